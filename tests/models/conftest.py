"""Servers on loopback and marked keys, for the tests of models behind an API or an endpoint."""

import os
from collections.abc import Iterator

import pytest

from r2med.models.api import requests
from support import chat_server as chat
from support import embedding_server as embedding
from support.keys import KEY


@pytest.fixture
def embedding_server() -> Iterator[embedding.Server]:
    with embedding.serve() as running:
        yield running


@pytest.fixture
def chat_server() -> Iterator[chat.Server]:
    with chat.serve() as running:
        yield running


@pytest.fixture
def marked_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marked key, and nothing of the user's own settings."""
    providers = ("OPENAI_", "VOYAGE_", "DEEPSEEK_")
    for name in [name for name in os.environ if "proxy" in name.lower() or name.startswith(providers)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)


@pytest.fixture(params=["openai", "voyage"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """One text a request."""
    monkeypatch.setattr(requests, "batches", lambda parcels, _: [[parcel] for parcel in parcels])
