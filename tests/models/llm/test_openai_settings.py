"""LLMs behind an endpoint: keys are never shown; wrong settings; sampling settings of cards."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.models.llm.chat import Sampling
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import LLMS, resolve_llm, sampling_of
from support import chat_server as api
from support.chat_models import ask, card, opened, setup, texts
from support.chat_server import Server
from support.keys import KEY

pytestmark = pytest.mark.usefixtures("marked_keys")


def test_openai_itself_needs_a_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    for llm, variable in ((LLMS["gpt4"], "OPENAI_API_KEY"), (LLMS["deepseek-r1"], "DEEPSEEK_API_KEY")):
        with pytest.raises(UserError, match=f"set the environment variable {variable}"):
            open_chat(llm, Runtime(store=Store(home))).complete(ask("gout"))


def test_an_open_model_is_not_sent_to_openai(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match=r"qwen-7b is not one of OpenAI's models; .* base_url \(--base-url URL\)"):
        open_chat(LLMS["qwen-7b"], Runtime(store=Store(home))).complete(ask("gout"))


def test_a_users_own_endpoint_needs_no_key(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    texts(opened(server, home).complete(ask("gout")))
    other = setup(server, home)
    texts(open_chat(resolve_llm("a/b:c", other.setup), other).complete(ask("gout")))
    assert {r.key for r in server.requests} == {""}
    assert server.requests[1].body["model"] == "a/b:c"


def test_bad_settings_give_a_one_line_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("localhost:80", "http://u:p@h/v1", " "):
        with pytest.raises(UserError, match=r"base URL given for m (is|must)"):
            open_chat(card(), Runtime(base_url=url))
    with pytest.raises(UserError, match=r"no LLM backend 'openia' \(did you mean openai\?\)"):
        open_chat(card(), Runtime(llm_backend="openia"))
    with pytest.raises(UserError, match=r"base_url \(--base-url\) is only for the backend openai"):
        open_chat(card(), Runtime(llm_backend="local", base_url="http://h/v1"))
    for wrong in ({"concurrency": 0}, {"deadline": 0.0}, {"idle": float("nan")}):
        with pytest.raises(UserError):
            Runtime(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="is not a name"):
        resolve_llm(" ", Setup(base_url="http://h/v1"))


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_is_never_shown_even_if_the_server_echoes_it(
    server: Server, home: Path, status: int, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    server.otherwise = api.echo_key(status)
    chat = opened(server, home)
    shown: list[object] = []
    try:
        shown += chat.complete(ask("gout"))
    except UserError as error:
        link: BaseException | None = error
        while link is not None:
            shown += [str(link), repr(link), vars(link)]
            link = link.__context__
    assert shown and server.requests[0].key == f"Bearer {KEY}"
    server.otherwise = None
    chat.complete(ask("gout"))
    shown += [caplog.text, *capfd.readouterr(), repr(chat), vars(chat), vars(chat._backend)]
    shown += [chat.key()]
    assert not [where for where in shown if KEY in str(where)]
    assert not [file for file in home.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    assert server.address.split("/")[2] not in json.dumps(chat.key()), "nor is the machine's address"


def test_every_card_says_how_it_is_sampled() -> None:
    for llm in LLMS.values():
        sampling = sampling_of(llm)
        assert sampling.max_tokens == llm.max_tokens
        assert (sampling.temperature is None) == (llm.api_style == "reasoning")
    assert replace(sampling_of(LLMS["gpt4"]), seed=None) == Sampling(temperature=0.8, top_p=0.8, max_tokens=10240)
