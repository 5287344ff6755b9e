"""Encoders behind an API: keys are never shown; base URLs, missing libraries and wrong cards."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import flag_of
from r2med.foundation.store import Store
from r2med.models.encoders.api_encoder import ApiEncoder
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS
from r2med.models.encoders.model_cards import ModelCard
from support import embedding_server as api
from support.api_encoders import TEXTS, WORDS, card, expected, opened
from support.embedding_server import Server
from support.keys import KEY

pytestmark = pytest.mark.usefixtures("marked_keys")


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_is_never_shown_even_if_the_server_echoes_it(
    server: Server, home: Path, provider: str, status: int, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    server.otherwise = api.echo_key(status)
    encoder = opened(server, home, provider)
    with pytest.raises(UserError) as error:
        encoder.encode(TEXTS, "document")
    assert server.requests[0].key == f"Bearer {KEY}"
    server.otherwise = None
    encoder.encode(TEXTS, "document")
    shown: list[object] = [caplog.text, *capfd.readouterr(), repr(encoder), vars(encoder)]
    shown += [encoder.key("query")]
    link: BaseException | None = error.value
    while link is not None:
        shown += [str(link), repr(link), vars(link)]
        link = link.__context__
    assert not [where for where in shown if KEY in str(where)]
    for file in home.rglob("*"):
        assert file.is_dir() or KEY.encode() not in file.read_bytes()


@pytest.mark.parametrize("value", [None, "", " "])
def test_a_missing_key_names_its_variable(
    server: Server, home: Path, provider: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{provider.upper()}_API_KEY"
    monkeypatch.delenv(variable) if value is None else monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match=f"set the environment variable {variable}"):
        opened(server, home, provider).encode(TEXTS, "document")


def test_a_key_that_is_invalid_in_a_header_is_not_shown(
    server: Server, home: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "sk-sécret")
    with pytest.raises(UserError, match="characters that cannot be part of a key") as error:
        opened(server, home, provider).encode(TEXTS, "document")
    assert "cret" not in str(error.value)


def test_the_base_url_may_come_from_the_environment(
    server: Server, home: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.address + "/")
    encoder = ApiEncoder(card(provider), WORDS, Runtime(), Store(home))
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document").vectors, expected(TEXTS))
    assert encoder.key("query") == opened(server, home, provider).key("query")
    assert "127.0.0.1" not in str(encoder.key("query"))


@pytest.mark.parametrize(
    "url", ["api.openai.com", "ftp://x/v1", "https://", "http://[", "http://u:pw-9@h/v1", "http://h/?k=pw-9"]
)
def test_an_invalid_base_url_or_one_with_secrets_is_refused(home: Path, url: str) -> None:
    with pytest.raises(UserError, match="base URL given for openai") as error:
        ApiEncoder(card(), WORDS, Runtime(endpoints=(("openai", url),)), Store(home))
    assert "pw-9" not in str(error.value)


def test_the_key_determines_the_address_of_the_provider() -> None:
    voyage = EMBEDDING_APIS["voyage"]
    assert voyage.url("pa-1") == "https://api.voyageai.com/v1"
    assert voyage.url("al-1") == "https://ai.mongodb.com/v1"


def test_a_card_of_another_kind_is_refused(home: Path) -> None:
    with pytest.raises(UserError, match="not an API model"):
        ApiEncoder(ModelCard(name="x", loader="transformers"), WORDS, Runtime(), Store(home))


def test_the_help_of_base_url_names_the_environment_variables_of_embedding_apis() -> None:
    told = flag_of("base_url").help
    assert "for any LLM" in told and EMBEDDING_APIS["openai"].url_variable in told
