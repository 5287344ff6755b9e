"""What the tests of models behind an API share."""

import pytest

from r2med.encoders.api import requests


@pytest.fixture(params=["openai", "voyage"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """One text a request."""
    monkeypatch.setattr(requests, "batches", lambda parcels, _: [[parcel] for parcel in parcels])
