"""Fixtures for tests of models behind an API."""

import pytest

from r2med.models.encoders import api_encoder
from support.embedding_server import Server


@pytest.fixture
def server(embedding_server: Server) -> Server:
    return embedding_server


@pytest.fixture(params=["openai", "voyage"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send one text per request."""
    monkeypatch.setattr(api_encoder, "batches", lambda pending, _: [[text] for text in pending])
