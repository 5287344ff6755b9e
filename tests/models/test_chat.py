"""LLMs behind an endpoint, against a scripted server on loopback: typed outcomes, nothing lost, nothing asked twice."""

import asyncio
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2med.engine.progress import Progress, listening
from r2med.errors import MissingExtraError, UserError
from r2med.models.chat.contracts import ChatRequest, Failure, Generation, Message, RawAnswer, Sampling
from r2med.models.chat.model import JournaledChat, journal_file
from r2med.models.chat.open import card_for_endpoint, open_chat, sampling_of
from r2med.models.chat.options import ChatOptions
from r2med.models.chat.price import estimate
from r2med.models.chat.tokens import approximate_tokens
from r2med.models.llm_cards import LLMCard, Price, llms
from r2med.models.net.retry import Policy
from r2med.store import Store
from support import chat_server as api
from support.chat_server import Server, reply_to
from support.processes import environment

KEY = "sk-marked-3f9a1c-never-shown"
FAST = Policy(base=0.01, cap=0.02, idle=10, deadline=30)
HASTY = Policy(base=0.01, idle=0.4, deadline=30)
SYSTEM = Message("system", "You are a helpful assistant.")


@pytest.fixture
def server() -> Iterator[Server]:
    with api.serve() as running:
        yield running


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marked key, and nothing of the user's own settings."""
    for name in [name for name in os.environ if "proxy" in name.lower() or name.startswith(("OPENAI_", "DEEPSEEK_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def card(**changes: Any) -> LLMCard:
    settings: dict[str, Any] = {"name": "m", "model": "org/m", "price": Price(prompt=1e6, completion=1e6)}
    return LLMCard(**(settings | {"max_tokens": 20} | changes))


def ask(*questions: str, sample: int = 0, **sampling: Any) -> list[ChatRequest]:
    return [ChatRequest((SYSTEM, Message("user", q)), Sampling(**sampling), sample) for q in questions]


def numbered(count: int) -> list[ChatRequest]:
    return ask(*(f"question {i}" for i in range(count)))


def opened(
    server: Server,
    home: Path,
    policy: Policy = FAST,
    concurrency: int = 16,
    budget: float | None = None,
    **changes: Any,
) -> JournaledChat:
    options = ChatOptions(base_url=server.address, concurrency=concurrency, budget_usd=budget)
    return open_chat(card(**changes), options, Store(home), policy=policy)


def texts(outcomes: list[Generation | Failure]) -> list[str]:
    assert all(isinstance(outcome, Generation) for outcome in outcomes), outcomes
    return [outcome.text for outcome in outcomes if isinstance(outcome, Generation)]


def one(outcomes: list[Generation | Failure], kind: str) -> Failure:
    (outcome,) = outcomes
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert "\n" not in outcome.message
    return outcome


# Answers


def test_an_answer_per_request_in_their_order(server: Server, home: Path) -> None:
    chat = opened(server, home)
    assert texts(chat.complete(numbered(50))) == [reply_to(f"question {i}") for i in range(50)]
    assert all(r.path == "/v1/chat/completions" and r.body["model"] == "org/m" for r in server.requests)
    assert server.requests[0].body["messages"][0] == {"role": "system", "content": "You are a helpful assistant."}
    usage = chat.usage()
    assert (usage["calls"], usage["journaled"], usage["retries"], usage["failures"]) == (50, 0, 0, 0)
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (50 * 7, 50 * 5)
    assert usage["cost_usd"] == 50 * 12 and usage["estimated"] == 0
    assert 0 < usage["latency_median"] <= usage["latency_p95"]


def test_connections_are_used_again(server: Server, home: Path) -> None:
    texts(opened(server, home, concurrency=2).complete(numbered(20)))
    assert server.connections == 2


def test_a_server_that_keeps_the_line_open_after_the_end_is_not_waited_for(server: Server, home: Path) -> None:
    server.otherwise = api.streamed(api.chunk({"content": "Gout."}, "stop"), api.DONE, close=False)
    started = time.monotonic()
    assert texts(opened(server, home).complete(ask("gout"))) == ["Gout."]
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("stream", [True, False])
def test_reasoning_in_its_own_field_is_kept_apart(server: Server, home: Path, stream: bool) -> None:
    for name in ("reasoning_content", "reasoning"):
        server.script = [api.answer("Gout.", reasoning="hm, a toe", reasoning_field=name, stream=stream)]
        (got,) = opened(server, home, answer="think").complete(ask(name))
        assert isinstance(got, Generation)
        assert (got.text, got.reasoning, got.finish_reason) == ("Gout.", "hm, a toe", "stop")


def test_tokens_that_a_server_does_not_tell_are_counted_roughly_and_marked(server: Server, home: Path) -> None:
    server.otherwise = api.answer("x" * 400, usage=False)
    chat = opened(server, home)
    chat.complete(ask("gout"))
    assert chat.usage()["estimated"] == 1
    assert chat.usage()["completion_tokens"] == 100


def test_a_server_that_knows_no_stream_options_is_asked_without(server: Server, home: Path) -> None:
    server.script = [api.refuse(400, '{"error": {"message": "Unknown parameter: stream_options"}}')]
    chat = opened(server, home, concurrency=1)
    assert len(texts(chat.complete(numbered(3)))) == 3
    assert ["stream_options" in r.body for r in server.requests] == [True, False, False, False]


def test_identical_requests_are_asked_once_and_samples_apart(server: Server, home: Path) -> None:
    chat = opened(server, home)
    requests = ask("gout", "gout", seed=42) + ask("gout", seed=42, sample=1) + ask("gout", temperature=0.5)
    assert texts(chat.complete(requests)) == [reply_to("gout")] * 4
    assert sorted(r.body.get("seed", 0) for r in server.requests) == [0, 42, 43], "each sample has its own seed"


def test_characters_that_are_halves_or_line_ends_elsewhere_survive(server: Server, home: Path) -> None:
    content = "a\u2028b\x85c 😀"
    line = json.dumps(api.chunk({"content": content}, "stop"), ensure_ascii=False).encode()
    server.script = [api.streamed(b"data: " + line[:40], line[40:] + b"\r\n\r\n: comment\n\n")]
    assert texts(opened(server, home).complete(ask("lone \ud800"))) == [content]
    assert server.requests[0].question == "lone �"


def test_complete_works_inside_a_running_loop_and_from_threads(server: Server, home: Path) -> None:
    server.otherwise = api.answer(delay=0.05)
    chat = opened(server, home)

    async def notebook() -> Any:
        return chat.complete(ask("gout"))

    assert texts(asyncio.run(notebook())) == [reply_to("gout")]
    got: list[Any] = []
    threads = [threading.Thread(target=lambda: got.append(chat.complete(numbered(3)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 3 and len(server.requests) == 4


def test_progress_is_told_where_it_is_listened_for(server: Server, home: Path) -> None:
    opened(server, home).complete(numbered(2))
    seen: list[Progress] = []
    with listening(seen.append):
        opened(server, home).complete(numbered(5))
    assert (seen[-1].what, seen[-1].done, seen[-1].total, seen[-1].before) == ("answers", 5, 5, 2)


# What is sent


def test_settings_go_out_as_a_chat_api_takes_them(server: Server, home: Path) -> None:
    sampling = {"temperature": 0.7, "top_p": 0.8, "seed": 42, "max_tokens": 99, "stop": ("</search>",)}
    opened(server, home).complete(ask("gout", **sampling))
    body = server.requests[0].body
    assert {name: body[name] for name in sampling} == sampling | {"stop": ["</search>"]}
    assert body["stream"] is True and body["stream_options"] == {"include_usage": True}
    assert not body.keys() & {"top_k", "repetition_penalty", "chat_template_kwargs", "max_completion_tokens"}


def test_a_reasoning_api_gets_no_temperature(server: Server, home: Path) -> None:
    opened(server, home, api_style="reasoning").complete(ask("gout", temperature=0.7, top_p=0.8, max_tokens=99))
    body = server.requests[0].body
    assert body["max_completion_tokens"] == 99
    assert not body.keys() & {"temperature", "top_p", "max_tokens"}


def test_what_only_some_servers_take_is_sent_only_when_set(server: Server, home: Path) -> None:
    opened(server, home, thinking=True).complete(ask("gout", top_k=20, repetition_penalty=1.05))
    body = server.requests[0].body
    assert (body["top_k"], body["repetition_penalty"]) == (20, 1.05)
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert not body.keys() & {"temperature", "top_p", "seed", "stop", "max_tokens"}


# Patience


def test_five_hundred_requests_with_a_fifth_of_them_failing(server: Server, home: Path) -> None:
    faults = [
        api.refuse(429, retry_after="0.05"),
        api.refuse(500),
        api.refuse(503, retry_after="0.02"),
        api.stall_half_way,
        api.hang,
        api.close_half_way,
        api.end_half_way,
        api.drop,
        api.invalid_json,
        api.answer(""),
    ]
    server.plan = {f"question {i}": [faults[i // 5 % len(faults)]] for i in range(0, 500, 5)}
    server.otherwise = api.answer(delay=0.005)
    chat = opened(server, home, HASTY, concurrency=64)
    outcomes = chat.complete(numbered(500))
    empty = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Failure)]
    assert empty == list(range(45, 500, 50)), "only what the model left empty failed"
    assert {outcomes[i].kind for i in empty} == {"empty"}  # type: ignore[union-attr]
    assert [o.text for o in outcomes if isinstance(o, Generation)] == [
        reply_to(f"question {i}") for i in range(500) if i not in empty
    ]
    assert sum(server.served.values()) == 500 and set(server.served.values()) == {1}
    usage = chat.usage()
    assert (usage["calls"], usage["failures"], usage["failures_empty"]) == (500, 10, 10)
    assert usage["retries"] == 90 == len(server.requests) - 500
    again = opened(server, home)
    assert [type(o) for o in again.complete(numbered(500))] == [type(o) for o in outcomes]
    assert len(server.requests) == 590, "an empty answer is the model's: it is not asked again"
    assert again.usage()["journaled"] == 500


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 529])
def test_what_may_pass_is_tried_again(server: Server, home: Path, status: int) -> None:
    server.script = [api.refuse(status), api.refuse(status)]
    chat = opened(server, home)
    texts(chat.complete(ask("gout")))
    assert len(server.requests) == 3 and chat.usage()["retries"] == 2


@pytest.mark.parametrize(
    ("step", "kind", "attempts"),
    [
        (api.refuse(500), "server", 6),
        (api.refuse(429), "rate_limit", 30),
        (api.drop, "connection", 6),
        (api.end_half_way, "connection", 6),
        (api.streamed({"error": {"message": "overloaded", "code": 502}}), "server", 6),
        (api.answer(finish="error"), "server", 6),
        (api.invalid_json, "invalid", 3),
        (api.raw(b"<html>hello</html>", "text/html"), "invalid", 3),
        (api.raw(b"[1]"), "invalid", 3),
        (api.raw(b'{"choices": []}'), "invalid", 3),
        (api.raw(b'{"choices": [{"message": {"content": 5}, "finish_reason": "stop"}]}'), "invalid", 3),
        (api.refuse(400), "bad_request", 1),
        (api.refuse(422), "bad_request", 1),
        (api.refuse(400, '{"error": {"message": "too long", "code": "context_length_exceeded"}}'), "context_length", 1),
        (api.refuse(400, '{"error": {"message": "the model\'s maximum context length is 5"}}'), "context_length", 1),
        (api.refuse(500, '{"error": {"type": "exceed_context_size_error"}}'), "context_length", 1),
    ],
)
def test_what_does_not_pass_is_a_typed_failure(server: Server, home: Path, step: Any, kind: str, attempts: int) -> None:
    server.plan = {"gout": [step] * 30}
    chat = opened(server, home)
    outcomes = chat.complete(ask("gout", "asthma"))
    assert one(outcomes[:1], kind).attempts == attempts
    assert isinstance(outcomes[1], Generation), "the others are not held up"
    server.plan = {}
    assert texts(opened(server, home).complete(ask("gout"))), "and it is tried again in the next run"


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (api.answer("half", finish="length"), "truncated"),
        (api.answer("", refusal="I cannot help"), "refused"),
        (api.answer("", finish="content_filter"), "refused"),
        (api.answer("hm, a toe"), "no_marker"),
    ],
)
def test_what_the_model_failed_at_is_kept_and_paid_for(server: Server, home: Path, step: Any, kind: str) -> None:
    server.otherwise = step
    for count in (1, 0):
        chat = opened(server, home, answer="think")
        failure = one(chat.complete(ask("gout")), kind)
        assert failure.prompt_tokens == 6 and chat.usage()["calls"] == count
        assert chat.usage()[f"failures_{kind}"] == 1
        assert chat.usage()["cost_usd"] > 0 or not count


def test_an_answer_that_came_whole_needs_no_bill(server: Server, home: Path) -> None:
    server.otherwise = api.streamed(api.chunk({"content": "Gout."}, "stop"), close=False)
    chat = opened(server, home, HASTY)
    assert texts(chat.complete(ask("gout"))) == ["Gout."]
    assert len(server.requests) == 1 and chat.usage()["estimated"] == 1


def test_the_deadline_ends_an_answer_that_never_ends(server: Server, home: Path) -> None:
    server.otherwise = api.trickle
    started = time.monotonic()
    one(opened(server, home, Policy(base=0.01, idle=5, deadline=0.5)).complete(ask("gout")), "timeout")
    assert time.monotonic() - started < 3


def test_retry_after_is_waited_for(server: Server, home: Path) -> None:
    server.script = [api.refuse(429, retry_after="0.5")]
    texts(opened(server, home).complete(ask("gout")))
    assert 0.5 <= server.requests[1].at - server.requests[0].at < 2


def test_a_wait_beyond_the_deadline_is_not_begun(server: Server, home: Path) -> None:
    server.otherwise = api.refuse(429, retry_after="3600")
    assert one(opened(server, home).complete(ask("gout")), "rate_limit").attempts == 1


def test_fewer_go_at_once_after_a_429_and_more_again_while_all_goes_well(server: Server, home: Path) -> None:
    levels: list[int] = []
    refusals = [16]

    async def busy(exchange: api.Exchange) -> None:
        levels.append(exchange.server.at_once)
        if refusals[0]:
            refusals[0] -= 1
            await asyncio.sleep(0.05)
            await exchange.send(429, b"{}", {"Retry-After": "0.05"})
        else:
            await api.answer(delay=0.02)(exchange)

    server.otherwise = busy
    texts(opened(server, home, Policy(base=0.02, deadline=30, attempts=9)).complete(numbered(150)))
    assert max(levels[:16]) == 16
    assert max(levels[16:40]) <= 9, "half as many"
    assert max(levels[100:]) >= 11, "and back"


# What makes every request pointless


def hopeless(server: Server, home: Path, said: str, **changes: Any) -> str:
    with pytest.raises(UserError, match=said) as error:
        opened(server, home, concurrency=4, **changes).complete(numbered(100))
    assert "\n" not in str(error.value)
    assert len(server.requests) <= 4, "nobody asks a hundred times"
    return str(error.value)


def test_a_wrong_key_stops_everything(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.otherwise = api.refuse(401)
    hopeless(server, home, "refuses the key in OPENAI_API_KEY")
    server.otherwise = api.refuse(403)
    server.requests.clear()
    hopeless(server, home, "refuses the key in OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    server.otherwise = api.refuse(401)
    server.requests.clear()
    hopeless(server, home, "needs a key: set the environment variable OPENAI_API_KEY")


@pytest.mark.parametrize(("status", "said"), [(404, "Not Found"), (400, "The model `org/m` does not exist")])
def test_an_unknown_model_stops_everything(server: Server, home: Path, status: int, said: str) -> None:
    server.otherwise = api.refuse(status, json.dumps({"error": {"message": said}}))
    hopeless(server, home, f"m at 127.0.0.1:.*{status}.*'org/m'")


def test_an_account_without_money_stops_everything(server: Server, home: Path) -> None:
    server.otherwise = api.refuse(429, '{"error": {"message": "quota", "code": "insufficient_quota"}}')
    hopeless(server, home, "429: quota")


def test_a_server_that_is_down_is_one_line(home: Path) -> None:
    with api.serve() as server:
        pass
    hopeless(server, home, r"connection to m at 127.0.0.1:\d+ failed \(\w+\) \(6 attempts\)")


def test_a_forbidden_question_among_others_is_a_failure_of_its_own(server: Server, home: Path) -> None:
    server.plan = {"question 7": [api.refuse(403)]}
    outcomes = opened(server, home, concurrency=1).complete(numbered(10))
    assert one(outcomes[7:8], "auth")
    assert len([o for o in outcomes if isinstance(o, Generation)]) == 9


def test_what_was_under_way_is_kept_when_all_stops(server: Server, home: Path) -> None:
    server.plan = {"question 0": [api.answer(delay=0.3)], "question 1": [api.refuse(401)]}
    with pytest.raises(UserError):
        opened(server, home, concurrency=2).complete(numbered(10))
    assert len(opened(server, home).unanswered(numbered(10))) == 9


def test_openai_itself_needs_a_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    for llm, variable in ((card(), "OPENAI_API_KEY"), (llms()["deepseek-r1"], "DEEPSEEK_API_KEY")):
        with pytest.raises(UserError, match=f"set the environment variable {variable}"):
            open_chat(llm, ChatOptions(), Store(home)).complete(ask("gout"))


def test_an_endpoint_of_ones_own_needs_no_key(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    texts(opened(server, home).complete(ask("gout")))
    texts(open_chat(card_for_endpoint("a/b:c", server.address), ChatOptions(), Store(home)).complete(ask("gout")))
    assert {r.key for r in server.requests} == {"Bearer none"}
    assert server.requests[1].body["model"] == "a/b:c"


def test_bad_settings_are_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for options in (ChatOptions(base_url="localhost:80"), ChatOptions(base_url="http://u:p@h/v1")):
        with pytest.raises(UserError, match="base URL given for m is"):
            open_chat(card(), options, Store(home))
    with pytest.raises(UserError, match=r"no LLM backend 'openia' \(did you mean openai\?\)"):
        open_chat(card(), ChatOptions(backend="openia"), Store(home))
    with pytest.raises(UserError, match="--base-url is for the backend openai"):
        open_chat(card(), ChatOptions(backend="local", base_url="http://h/v1"), Store(home))
    for wrong in ({"concurrency": 0}, {"deadline": 0.0}, {"idle": float("nan")}):
        with pytest.raises(UserError):
            ChatOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="is no name"):
        card_for_endpoint(" ", "http://h/v1")
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"r2med\[llm\]"):
        open_chat(card(), ChatOptions(base_url="http://127.0.0.1:1/v1"), Store(home)).complete(ask("gout"))


# The journal


def test_a_second_model_asks_nothing_and_needs_no_key(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(server, home).complete(numbered(3))
    monkeypatch.delenv("OPENAI_API_KEY")
    chat = opened(server, home, budget=0.0)
    assert chat.unanswered(numbered(4)) == numbered(4)[3:]
    assert chat.complete(numbered(3)) == first
    usage = chat.usage()
    assert (usage["calls"], usage["journaled"], usage["cost_usd"]) == (0, 3, 0)
    assert usage["journaled_completion_tokens"] == 15
    assert len(server.requests) == 3


def test_cleaning_may_change_without_a_call(server: Server, home: Path) -> None:
    server.otherwise = api.answer("hm\n## Final Response\ngout")
    assert texts(opened(server, home).complete(ask("q"))) == ["hm\n## Final Response\ngout"]
    assert texts(opened(server, home, answer="final-response").complete(ask("q"))) == ["gout"]
    assert len(server.requests) == 1


def test_answers_of_another_model_setting_or_server_are_not_taken(server: Server, home: Path) -> None:
    for changes in ({}, {"model": "other"}, {"thinking": True}):
        opened(server, home, **changes).complete(ask("gout"))
    opened(server, home).complete(ask("gout", max_tokens=5))
    assert len(server.requests) == 4
    with api.serve() as other:
        opened(other, home).complete(ask("gout"))
        assert len(other.requests) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE answers SET answer = replace(answer, 'passage', 'message')",
        "UPDATE answers SET answer = 'text'",
        "UPDATE answers SET answer = x'00'",
        "UPDATE answers SET model = 'other'",
        "UPDATE answers SET checksum = x'00'",
    ],
)
def test_a_damaged_row_is_asked_for_again(server: Server, home: Path, damage: str) -> None:
    opened(server, home).complete(numbered(3))
    with sqlite3.connect(journal_file(Store(home))) as db:
        db.execute(damage)
    db.close()
    for _ in range(2):
        assert texts(opened(server, home).complete(numbered(3))) == [reply_to(f"question {i}") for i in range(3)]
    assert len(server.requests) == 6


def test_a_journal_that_is_none_is_one_line_and_left_alone(server: Server, home: Path) -> None:
    file = journal_file(Store(home))
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not a database, but somebody's work" * 99)
    with pytest.raises(UserError, match=r"chat.sqlite: this journal .* cannot be used"):
        opened(server, home).complete(ask("gout"))
    assert file.read_bytes().startswith(b"not a database") and not server.requests


CHILD = """
import sys
from r2med.models.chat.contracts import ChatRequest, Generation, Message, Sampling
from r2med.models.chat.open import open_chat
from r2med.models.chat.options import ChatOptions
from r2med.models.llm_cards import LLMCard
from r2med.models.net.retry import Policy
from r2med.store import Store

card, address, home = LLMCard.model_validate_json(sys.argv[1]), sys.argv[2], sys.argv[3]
chat = open_chat(card, ChatOptions(base_url=address, concurrency=8), Store(home), policy=Policy(base=0.01))
system = Message("system", "You are a helpful assistant.")
requests = [ChatRequest((system, Message("user", f"question {i}")), Sampling()) for i in range(100)]
try:
    answers = chat.complete(requests)
except KeyboardInterrupt:
    sys.exit(77)
assert all(isinstance(a, Generation) and a.text == f"A passage about question {i}." for i, a in enumerate(answers))
print(int(chat.usage()["calls"]), int(chat.usage()["journaled"]))
"""


def child(server: Server, home: Path) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", CHILD, card().model_dump_json(), server.address, str(home)]
    settings = environment(OPENAI_API_KEY=KEY)
    return subprocess.Popen(arguments, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(happened: Any) -> None:
    limit = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_repeats_nothing(server: Server, home: Path, number: signal.Signals) -> None:
    server.otherwise = api.answer(delay=0.02)
    with child(server, home) as first:
        wait_for(lambda: sum(server.served.values()) >= 30)
        server.otherwise = api.hang  # what is under way now is lost, and all that is lost
        wait_for(lambda: server.at_once == 8 and len(server.requests) - sum(server.served.values()) == 8)
        time.sleep(0.1)
        started = time.monotonic()
        first.send_signal(number)
        assert first.wait(10) == (77 if number == signal.SIGINT else -number), first.communicate()
        assert time.monotonic() - started < 5
        first.communicate()
    before = len(server.served)
    server.otherwise = None
    second = opened(server, home)
    started = time.monotonic()
    texts(second.complete(numbered(100)))
    assert time.monotonic() - started < 10, "a dead process's leases are nobody's"
    assert second.usage()["journaled"] == before
    assert len(server.served) == 100 and set(server.served.values()) == {1}


def test_two_processes_share_a_journal(server: Server, home: Path) -> None:
    server.otherwise = api.answer(delay=0.03)
    with child(server, home) as one, child(server, home) as two:
        results = [process.communicate(timeout=30) for process in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), results
    assert len(server.served) == 100 and set(server.served.values()) == {1}
    assert sum(int(out.split()[0]) for out, _ in results) == 100


def test_what_another_gave_up_on_is_asked_by_who_waited(server: Server, home: Path) -> None:
    steps = [api.answer(delay=0.5), api.refuse(400)]
    server.plan = {"question 0": steps[:1], "question 1": steps[1:]}
    first = threading.Thread(target=lambda: opened(server, home).complete(numbered(2)))
    first.start()
    wait_for(lambda: len(server.requests) == 2)
    chat = opened(server, home)
    texts(chat.complete(numbered(2)))
    first.join()
    assert (chat.usage()["calls"], chat.usage()["journaled"]) == (1, 1)
    assert server.served == {"question 0": 1, "question 1": 1}


def test_a_backend_that_forgets_answers_is_noticed(home: Path) -> None:
    class Forgetful:
        def describe(self) -> dict[str, Any]:
            return {}

        def answer(self, requests: Any, done: Any) -> None:
            done(0, RawAnswer("text"))

    with pytest.raises(RuntimeError, match="without 1 of its 2 answers"):
        JournaledChat(card(), Forgetful(), Store(home)).complete(numbered(2))


# Budget


def test_a_budget_stops_cleanly_and_a_larger_one_continues(server: Server, home: Path) -> None:
    chat = opened(server, home, budget=200.0)  # $12 each by the bill, up to $66 before it is known
    outcomes = chat.complete(numbered(30))
    done = [o for o in outcomes if isinstance(o, Generation)]
    left = [o for o in outcomes if isinstance(o, Failure)]
    assert {o.kind for o in left} == {"budget"} and "larger budget" in left[0].message
    assert chat.usage()["cost_usd"] == 12 * len(done) <= 200
    assert len(done) >= 11, "reservations are settled by the bill"
    assert chat.usage()["calls"] == len(done) == len(server.requests)
    assert chat.usage()["failures_budget"] == len(left)
    texts(opened(server, home, budget=10_000.0).complete(numbered(30)))
    assert set(server.served.values()) == {1}


def test_a_budget_of_nothing_sends_nothing(server: Server, home: Path) -> None:
    one(opened(server, home, budget=0.0, price=Price()).complete(ask("gout")), "budget")
    assert not server.requests


def test_a_budget_is_shared_by_all_models_of_a_run(server: Server, home: Path) -> None:
    options = ChatOptions(base_url=server.address, budget_usd=65.0)
    texts(open_chat(card(), options, Store(home), policy=FAST).complete(ask("gout")))
    one(open_chat(card(model="other"), options, Store(home), policy=FAST).complete(ask("gout")), "budget")
    assert len(server.requests) == 1


def test_a_budget_needs_a_price(home: Path) -> None:
    with pytest.raises(UserError, match="has no price"):
        open_chat(LLMCard(name="m", model="m"), ChatOptions(budget_usd=1.0), Store(home))


# Secrets


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_is_shown_nowhere_even_when_the_server_echoes_it(
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
    shown += [caplog.text, *capfd.readouterr(), repr(chat), vars(chat), vars(chat._backend), chat.usage()]
    shown += [chat.describe()]
    assert not [where for where in shown if KEY in str(where)]
    assert not [file for file in home.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    assert server.address.split("/")[2] not in json.dumps(chat.describe()), "nor is the machine's address"


# Estimates and cards


def test_an_estimate_counts_distinct_requests() -> None:
    requests = ask("x" * 372, "x" * 372, "y" * 372, max_tokens=10)
    got = estimate(requests, card())
    assert (got.calls, got.prompt_tokens, got.completion_tokens) == (2, 2 * (93 + 7 + 8), 20)
    assert got.cost_usd == got.cost_at_most_usd == 236
    assert approximate_tokens("") == 0 and approximate_tokens("word" * 10) == 10 and approximate_tokens("痛风痛风") == 3


def test_every_card_says_how_it_is_sampled() -> None:
    for llm in llms().values():
        sampling = sampling_of(llm)
        assert sampling.max_tokens == llm.max_tokens
        assert (sampling.temperature is None) == (llm.api_style == "reasoning")
    assert replace(sampling_of(llms()["gpt4"]), seed=None) == Sampling(temperature=0.8, top_p=0.8, max_tokens=10240)
