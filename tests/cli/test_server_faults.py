"""What `generate` and `run` do when the server of an LLM misbehaves: on loopback, as typed or called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2med import Setup
from support import chat_server as api
from support.chat_server import Server
from support.commands import run_here
from support.facts import some_states, states
from support.keys import KEY
from support.loopback import nobody_listening
from support.processes import Ended

pytestmark = pytest.mark.usefixtures("marked_keys")

Typed = Callable[..., Ended]

QUERIES = 8
"""Queries of demo/Biology."""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Three attempts and short waits, for which there are no flags. A test may change them."""
    patience: dict[str, Any] = {"attempts": 3, "first_wait": 0.01}
    usual = Setup.policy
    assert isinstance(usual, property) and usual.fget is not None
    of_setup = usual.fget
    monkeypatch.setattr(Setup, "policy", property(lambda setup: replace(of_setup(setup), **patience)))
    return patience


@pytest.fixture
def r2med(tmp_path: Path) -> Typed:
    """Run commands in this process, where `patience` holds."""
    return lambda *words: run_here(*words, cwd=tmp_path)


def generated(r2med: Typed, address: str, *words: str) -> Ended:
    """Type `r2med generate` for eight queries. Whatever happens, there is no traceback and no key on the screen."""
    done = r2med("generate", "hyde", "--llm", "org/m:free", "--data", "demo/Biology", "--base-url", address, *words)
    assert "Traceback" not in done.stderr and KEY not in done.stdout + done.stderr
    return done


def written(folder: Path) -> int:
    """Return the number of texts that were written."""
    file = folder / "generations/demo/Biology/hyde/org--m++free/query_with_hydoc.jsonl"
    rows = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return sum(bool(json.loads(row)["hy_doc"]) for row in rows)


def all_failed(done: Ended, *facts: object) -> None:
    """Check that a command ended with an error or without texts, and that one line has these facts."""
    assert done.returncode in (1, 2), done
    some_states(done.messages, *facts)


def test_a_refused_connection_is_one_line_with_the_setting_to_check(r2med: Typed, tmp_path: Path) -> None:
    with nobody_listening() as address:
        done = generated(r2med, address)
    all_failed(done, "connection", address.removeprefix("http://"), "base URL", "3 attempts")
    assert written(tmp_path) == 0


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_named_by_its_variable_and_never_shown(status: int, chat_server: Server, r2med: Typed) -> None:
    chat_server.otherwise = api.echo_key(status)
    done = generated(r2med, chat_server.address)
    all_failed(done, "OPENAI_API_KEY", status)
    assert chat_server.requests[0].key == f"Bearer {KEY}", "it was sent"


def test_an_error_that_repeats_the_key_is_shown_without_it(chat_server: Server, r2med: Typed) -> None:
    chat_server.otherwise = api.echo_key(400)
    all_failed(generated(r2med, chat_server.address), "400", "bad request with Authorization", "[hidden]")


def test_a_429_is_waited_for_as_the_server_says(chat_server: Server, r2med: Typed, tmp_path: Path) -> None:
    chat_server.script = [api.refuse(429, retry_after="0.6")]
    assert generated(r2med, chat_server.address, "--concurrency", "1").returncode == 0
    first, second = (request.at for request in chat_server.requests[:2])
    assert second - first >= 0.6
    assert (written(tmp_path), len(chat_server.requests)) == (QUERIES, QUERIES + 1)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(api.refuse(500), id="500"),
        pytest.param(api.refuse(503), id="503"),
        pytest.param(api.drop, id="dropped connection"),
        pytest.param(api.close_half_way, id="stream cut in the middle"),
        pytest.param(api.end_half_way, id="stream that ends early"),
        pytest.param(api.invalid_json, id="broken JSON"),
    ],
)
def test_a_fault_that_passes_loses_nothing_and_no_answer_is_asked_twice(
    fault: api.Step, chat_server: Server, r2med: Typed, tmp_path: Path
) -> None:
    chat_server.script = [fault, fault]
    done = generated(r2med, chat_server.address)
    assert (done.returncode, written(tmp_path)) == (0, QUERIES), done
    assert len(chat_server.requests) == QUERIES + 2 and set(chat_server.served.values()) == {1}
    assert generated(r2med, chat_server.address, "--overwrite").returncode == 0
    assert len(chat_server.requests) == QUERIES + 2, "all answers were saved"


def test_a_page_instead_of_answers_is_a_wrong_address(chat_server: Server, r2med: Typed) -> None:
    chat_server.otherwise = api.raw(b"<!doctype html><title>Welcome</title>", "text/html")
    all_failed(generated(r2med, chat_server.address), "neither JSON nor a stream of JSON", "base URL", "3 attempts")


def test_a_redirect_to_another_host_is_not_followed(chat_server: Server, r2med: Typed) -> None:
    with api.serve() as elsewhere:
        chat_server.otherwise = api.refuse(307, "", Location=f"{elsewhere.address}/chat/completions?token=abc")
        done = generated(r2med, chat_server.address)
        assert not elsewhere.requests, "the prompts and the key stay here"
    all_failed(done, "307", "redirects", elsewhere.address.removesuffix("/v1"), "not followed")
    assert "token=abc" not in done.stderr


def test_an_answer_without_an_end_is_not_read_for_ever(chat_server: Server, r2med: Typed) -> None:
    async def endless(exchange: api.Exchange) -> None:
        await exchange.begin_stream()
        while not exchange.writer.is_closing():
            await exchange.event(exchange.piece({"content": "x" * 500_000}))

    chat_server.otherwise = endless
    done = generated(r2med, chat_server.address, "--concurrency", "1")
    all_failed(done, "larger than", "MB", "not read")


def test_a_server_that_never_answers_is_given_up(chat_server: Server, r2med: Typed, patience: dict[str, float]) -> None:
    chat_server.otherwise = api.hang
    patience |= {"idle": 0.3, "attempts": 2}
    done = generated(r2med, chat_server.address)
    all_failed(done, "silent for 0.3 s")
    assert len(chat_server.requests) <= 2 * QUERIES


def test_an_answer_that_never_ends_is_given_up_at_the_deadline(chat_server: Server, r2med: Typed) -> None:
    chat_server.otherwise = api.trickle
    all_failed(generated(r2med, chat_server.address, "--deadline", "0.5"), "no complete answer within 0.5 s")


@pytest.fixture
def priced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Add the card of an LLM with a price: an answer costs at most $1.02 and is billed as far less."""
    card = tmp_path / "plugins/llms/priced.toml"
    card.parent.mkdir(parents=True)
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugins"))
    card.write_text('model = "org/priced"\nmax_tokens = 1000\n[price]\nprompt = 0\ncompletion = 1000\n')
    return "priced"


def test_a_budget_that_ends_in_the_middle_keeps_what_was_paid_for(
    priced: str, chat_server: Server, r2med: Typed, tmp_path: Path
) -> None:
    words = ("--concurrency", "1", "--data", "demo/Biology", "--base-url", chat_server.address, "-o", "out")
    chat_server.otherwise = api.answer(text="word " * 500)
    short = r2med("run", f"hyde({priced}) → bm25", *words, "--budget", "2.2")
    paid = len(chat_server.requests)
    assert 0 < paid < QUERIES, "a part was paid for"
    some_states(short.messages, "budget of $2.2 allows no further request")
    again = r2med("run", f"hyde({priced}) → bm25", *words, "--budget", "100")
    assert again.returncode == 0, again.stderr
    assert len(chat_server.requests) == QUERIES and set(chat_server.served.values()) == {1}


def test_what_was_answered_before_a_wrong_key_is_not_asked_again(chat_server: Server, r2med: Typed) -> None:
    refused = asyncio.Event()

    async def late(exchange: api.Exchange) -> None:
        await refused.wait()
        await api.answer()(exchange)

    async def refuse(exchange: api.Exchange) -> None:
        await api.refuse(401)(exchange)
        refused.set()

    chat_server.script = [late, refuse]
    all_failed(generated(r2med, chat_server.address, "--concurrency", "2"), "refuses the key")
    assert generated(r2med, chat_server.address).returncode == 0
    assert sum(chat_server.served.values()) == QUERIES and set(chat_server.served.values()) == {1}


CONTEXT = 8192
"""Tokens of the context of a small server. An answer may have 10,240 tokens if no card says less."""


def small_server(message: str, *, counts: bool) -> api.Step:
    """Return a server that refuses what its context cannot hold, as vLLM does. `counts`: it has /tokenize, too."""

    async def step(exchange: api.Exchange) -> None:
        request = exchange.request
        if request.path == "/tokenize":
            sizes = {"count": request.prompt_tokens, "max_model_len": CONTEXT}
            await (exchange.send(200, json.dumps(sizes).encode()) if counts else api.refuse(404)(exchange))
        elif request.prompt_tokens + request.body["max_tokens"] > CONTEXT:
            await api.refuse(400, json.dumps({"error": {"message": message}}))(exchange)
        else:
            await api.answer()(exchange)

    return step


@pytest.mark.parametrize("concurrency", ["1", "4"])
@pytest.mark.parametrize(
    ("message", "counts"),
    [
        pytest.param(
            "'max_tokens' is too large: 10240. This model's maximum context length is 8192 tokens and your request has "
            "25 input tokens (10240 > 8192 - 25).",
            False,
            id="the refusal says it",
        ),
        pytest.param("The prompt is too long.", True, id="/tokenize says it"),
    ],
)
def test_a_served_model_with_a_smaller_context_than_our_default_answers_all_questions(
    message: str, counts: bool, concurrency: str, chat_server: Server, r2med: Typed, tmp_path: Path
) -> None:
    chat_server.otherwise = small_server(message, counts=counts)
    done = generated(r2med, chat_server.address, "--concurrency", concurrency)
    assert (done.returncode, written(tmp_path)) == (0, QUERIES), done
    limits = [request.body["max_tokens"] for request in chat_server.requests if "max_tokens" in request.body]
    refused = limits.count(10240)
    assert refused <= int(concurrency), "only the questions that were sent before the first refusal"
    assert sorted(limits) == [CONTEXT // 2] * QUERIES + [10240] * refused
    [notice] = [message for message in done.messages if "context" in message]
    states(notice, "8,192", "4,096", "max_tokens")
    assert set(chat_server.served.values()) == {1}
