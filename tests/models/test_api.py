"""Encoders behind an API, against a server on loopback: right vectors, bounded patience, nothing paid for twice."""

import asyncio
import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.data.cards import Instruction
from r2med.errors import MissingExtraError, UserError
from r2med.models.api import open_api_encoder, requests
from r2med.models.api.tokens import Ruler, load_tiktoken, load_voyage
from r2med.models.cards import ModelCard, Side, model_card
from r2med.models.contracts import Encoder
from r2med.models.net.budget import Budget
from r2med.models.net.retry import Policy, RequestFailed, _wait, retry_after
from r2med.models.net.throttle import Throttle
from r2med.models.options import Options
from r2med.store import Store
from support import embedding_server as api
from support.embedding_server import Server, vector
from support.processes import environment

KEY = "sk-marked-3f9a1c-never-shown"
WORDS = Instruction(kind="question", what="passages", domain="Medical")
FAST = Policy(base=0.01, idle=10, deadline=30)
HASTY = Policy(base=0.01, idle=0.4, deadline=30)
TEXTS = ["asthma", "gout of the toe", "measles"]


class Words:
    """A tokenizer small enough to see through: one token a word."""

    def count(self, text: str) -> int:
        return len(text.split())

    def head(self, text: str, tokens: int) -> str:
        return " ".join(text.split()[:tokens])


@pytest.fixture
def server() -> Iterator[Server]:
    with api.serve() as running:
        yield running


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marked key, and nothing of the user's own settings."""
    for name in [name for name in os.environ if "proxy" in name.lower() or name.startswith(("OPENAI_", "VOYAGE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)


@pytest.fixture(params=["openai", "voyage"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def card(provider: str = "openai", **changes: Any) -> ModelCard:
    settings: dict[str, Any] = {
        "name": provider,
        "repository": f"{provider}-model",
        "loader": provider,
        "dimension": api.DIMENSION,
        "price_per_million_tokens": 1_000_000.0,
        "query": Side(prefix="about {kind}: ", max_tokens=500, input_type="query" if provider == "voyage" else ""),
        "document": Side(max_tokens=500, input_type="document" if provider == "voyage" else ""),
    }
    return ModelCard(**(settings | changes))


def opened(
    server: Server,
    home: Path,
    provider: str = "openai",
    policy: Policy = FAST,
    budget: float | None = None,
    **changes: Any,
) -> Encoder:
    options = Options(base_urls=((provider, server.address),), budget_usd=budget)
    return open_api_encoder(card(provider, **changes), WORDS, options, Store(home), policy=policy, tokenizer=Words())


def expected(texts: list[str]) -> Any:
    return np.stack([vector(text) for text in texts])


@pytest.fixture
def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "batches", lambda parcels, _: [[parcel] for parcel in parcels])


# Right vectors


def test_a_row_per_text_in_the_texts_order(server: Server, home: Path, provider: str) -> None:
    texts = [f"text {i} " + "word " * (i % 90) for i in range(500)]
    encoder = opened(server, home, provider)
    rows = encoder.encode(texts, "document")
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, expected(texts))
    assert all(len(r.texts) <= 256 for r in server.requests) and len(server.requests) > 1
    assert sorted(t for r in server.requests for t in r.texts) == sorted(texts)
    usage = encoder.usage()
    assert (usage["texts"], usage["cached"], usage["retries"], usage["truncated"]) == (500, 0, 0, 0)
    assert usage["tokens"] == sum(map(api.tokens, texts)) == usage["cost_usd"]


def test_rows_are_ordered_by_their_index(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.answer(api.shuffled)
    texts = [f"text {i}" for i in range(50)]
    np.testing.assert_array_equal(opened(server, home, provider).encode(texts, "document"), expected(texts))


def test_decimals_are_read_as_well_as_base64(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.answer(decimals=True)
    np.testing.assert_array_equal(opened(server, home, provider).encode(TEXTS, "document"), expected(TEXTS))


def test_prefix_and_input_type_go_with_the_role(server: Server, home: Path, provider: str) -> None:
    encoder = opened(server, home, provider)
    for role in ("query", "document", "generated"):
        encoder.encode(["gout"], role)  # type: ignore[arg-type]
    assert server.requests[0].texts == ["about question: gout"]
    assert [r.body.get("input_type") for r in server.requests] == (
        ["query", "document", "query"] if provider == "voyage" else [None, None]
    )  # OpenAI knows no roles: the bare generated text is the document, and cached
    assert all(r.path == "/v1/embeddings" and r.body["model"] == f"{provider}-model" for r in server.requests)
    assert all(r.body.get("truncation", False) is False for r in server.requests)


def test_identical_texts_are_sent_once(server: Server, home: Path) -> None:
    rows = opened(server, home).encode(["gout", "asthma", "gout"], "document")
    assert [r.texts for r in server.requests] == [["gout", "asthma"]]
    np.testing.assert_array_equal(rows, expected(["gout", "asthma", "gout"]))


def test_empty_texts_and_no_texts(server: Server, home: Path) -> None:
    encoder = opened(server, home)
    assert encoder.encode([], "document").shape == (0, api.DIMENSION)
    assert not server.requests
    np.testing.assert_array_equal(encoder.encode(["", "a \ud800 b"], "document"), expected([" ", "a � b"]))


def test_normalised_where_the_card_says_so(server: Server, home: Path) -> None:
    rows = opened(server, home, normalise=True).encode(TEXTS, "document")
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)


def test_several_requests_go_at_once_and_no_more_than_allowed(server: Server, home: Path, small_requests: None) -> None:
    server.otherwise = api.answer(delay=0.2)
    opened(server, home, policy=Policy(concurrency=4)).encode([f"text {i}" for i in range(8)], "document")
    assert server.most_at_once == 4


def test_encode_works_inside_a_running_loop(server: Server, home: Path, provider: str) -> None:
    async def notebook() -> Any:
        return opened(server, home, provider).encode(TEXTS, "document")

    np.testing.assert_array_equal(asyncio.run(notebook()), expected(TEXTS))


def test_the_real_cards_open(home: Path) -> None:
    for name in ("openai", "voyage"):
        about = open_api_encoder(model_card(name), WORDS, Options(), Store(home)).describe("query")
        assert {"model", "provider", "prefix", "max_tokens", "input_type", "normalise"} <= about.keys()
        assert about["endpoint"] == ""
        json.dumps(about)


def test_a_query_prefix_does_not_show_in_the_description_of_documents(server: Server, home: Path) -> None:
    one, two = opened(server, home), opened(server, home, query=Side(prefix="other"))
    assert one.describe("document") == two.describe("document")
    assert one.describe("query") != two.describe("query")


# Lengths


def test_texts_over_the_limit_are_cut_by_the_tokenizer_and_counted(server: Server, home: Path, provider: str) -> None:
    encoder = opened(server, home, provider, document=Side(max_tokens=20))
    texts = ["short", "word " * 50, "a" * 90]
    rows = encoder.encode(texts, "document")
    np.testing.assert_array_equal(rows, expected(["short", " ".join(["word"] * 20), "a" * 90]))
    assert encoder.usage()["truncated"] == 1
    encoder.encode(texts, "document")
    assert encoder.usage()["truncated"] == 2, "a cut text is counted from the cache, too"
    assert len(server.requests) == 1


def test_a_short_text_needs_no_tokenizer() -> None:
    ruler = Ruler(lambda: pytest.fail("it was loaded"))
    assert ruler.cut("ä" * 3, 6) == "ä" * 3
    assert ruler.bound("ä" * 3) == 6


def test_a_long_text_without_a_tokenizer_is_one_line(
    server: Server, home: Path, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "empty"))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")  # no network, at once
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    options = Options(base_urls=((provider, server.address),))
    encoder = open_api_encoder(card(provider), WORDS, options, Store(home), policy=FAST)
    with pytest.raises(UserError, match="TIKTOKEN_CACHE_DIR" if provider == "openai" else "HF_HOME"):
        encoder.encode(["short", "x" * 501], "document")
    assert not server.requests, "nothing is paid for before all texts are known to fit"


def test_a_cut_may_not_go_through_a_character_or_add_tokens() -> None:
    import tiktoken

    ranks = {bytes([i]): i for i in range(256)} | {b"ab": 256, b"abc": 257}
    encoding = tiktoken.Encoding("tiny", pat_str=r"\S+|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 258})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiktoken, "get_encoding", lambda name: encoding)
        ruler = Ruler(lambda: load_tiktoken("m"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiktoken, "get_encoding", lambda name: encoding)
        assert ruler.cut("ää" * 3, 5) == "ää"
        assert ruler.cut("abcabcabc", 2) == "abcabc"
        assert ruler.cut("abcabcabc", 3) == "abcabcabc"
        assert ruler.cut("<|end|>", 4) == "<|en", "what looks like a special token is text"


def test_voyage_texts_are_cut_by_its_hub_tokenizer() -> None:
    import tokenizers
    import voyageai

    vocabulary = {word: i for i, word in enumerate(["[UNK]", "[CLS]", "one", "two", "three"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(voyageai.Client, "tokenizer", lambda self, model: tokenizer)
        ruler = Ruler(lambda: load_voyage("m"))
        assert ruler.cut("one two  three", 3) == "one two", "its first special token counts"
        assert ruler.cut("one two  three", 4) == "one two  three"


def test_requests_keep_to_the_limits_of_a_provider() -> None:
    from r2med.models.api.providers import PROVIDERS
    from r2med.models.api.requests import Parcel, batches

    openai = PROVIDERS["openai"]
    assert [len(b) for b in batches([Parcel(b"", "", 1)] * 600, openai)] == [256, 256, 88]
    assert [len(b) for b in batches([Parcel(b"", "", 40_000)] * 5, openai)] == [2, 2, 1]
    assert [len(b) for b in batches([Parcel(b"", "", 200_000)] * 2, openai)] == [1, 1]


# Patience


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_pass_is_tried_again(server: Server, home: Path, provider: str, status: int) -> None:
    server.script = [api.refuse(status), api.refuse(status)]
    encoder = opened(server, home, provider)
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document"), expected(TEXTS))
    assert len(server.requests) == 3 and encoder.usage()["retries"] == 2


@pytest.mark.parametrize("fault", [api.close, api.close_half_way, api.hang, api.stall_half_way])
def test_broken_connections_are_tried_again(server: Server, home: Path, provider: str, fault: Any) -> None:
    server.script = [fault]
    np.testing.assert_array_equal(opened(server, home, provider, HASTY).encode(TEXTS, "document"), expected(TEXTS))
    assert len(server.requests) >= 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_will_not_pass_is_not_tried_again(server: Server, home: Path, provider: str, status: int) -> None:
    server.otherwise = api.refuse(status, '{"error": {"message": "so\\nnot"}, "detail": "so not"}')
    with pytest.raises(UserError, match=f"HTTP {status}") as error:
        opened(server, home, provider).encode(TEXTS, "document")
    assert len(server.requests) == 1
    assert "\n" not in str(error.value)
    assert ("API_KEY" in str(error.value)) == (status in (401, 403))
    assert ("so not" in str(error.value)) == (status not in (401, 403))


def test_an_account_without_money_is_not_tried_again(server: Server, home: Path) -> None:
    body = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    server.otherwise = api.refuse(429, body)
    with pytest.raises(UserError, match="exceeded your current quota"):
        opened(server, home).encode(TEXTS, "document")
    assert len(server.requests) == 1


def test_attempts_end(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.refuse(500)
    with pytest.raises(UserError, match=r"HTTP 500.*6 attempts.*run again to continue"):
        opened(server, home, provider).encode(TEXTS, "document")
    assert len(server.requests) == 6


def test_the_deadline_ends_a_request_that_trickles_on(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.trickle
    started = time.monotonic()
    with pytest.raises(UserError, match=r"silent|no whole answer"):
        opened(server, home, provider, Policy(base=0.01, idle=0.4, deadline=0.6)).encode(TEXTS, "document")
    assert time.monotonic() - started < 5
    assert len(server.requests) == (1 if provider == "openai" else 2), "Voyage's SDK limits an attempt, not its silence"


def test_a_server_that_is_down_is_one_line(home: Path, provider: str) -> None:
    with api.serve() as server:
        pass
    with pytest.raises(UserError, match=rf"connection to {provider} at 127.0.0.1:\d+ failed \(\w+\) \(6 attempts\)"):
        opened(server, home, provider).encode(TEXTS, "document")


def test_retry_after_is_waited_for(server: Server, home: Path, provider: str) -> None:
    server.script = [api.refuse(429, "{}", retry_after="0.6")]
    opened(server, home, provider).encode(TEXTS, "document")
    assert 0.6 <= server.requests[1].at - server.requests[0].at < 2


def test_retry_after_may_be_a_date(server: Server, home: Path) -> None:
    server.script = [api.refuse(503, "{}", retry_after=formatdate(time.time() + 2, usegmt=True))]
    opened(server, home).encode(TEXTS, "document")
    assert 0.8 <= server.requests[1].at - server.requests[0].at < 4


def test_a_wait_beyond_the_deadline_is_not_begun(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.refuse(429, "{}", retry_after="3600")
    with pytest.raises(UserError, match="asks to wait 3600 s"):
        opened(server, home, provider).encode(TEXTS, "document")
    assert len(server.requests) == 1


def test_how_retry_after_is_read() -> None:
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    assert retry_after({"retry-after": "-3"}) == 0
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nonsense in ({}, {"retry-after": "soon"}, {"retry-after": "nan"}, {"retry-after": "inf"}):
        assert retry_after(nonsense) is None


def test_waits_grow_and_are_jittered() -> None:
    failure = RequestFailed("", again=True)
    policy = Policy(base=2, cap=20)
    for attempt, most in ((1, 2), (2, 4), (3, 8), (6, 20)):
        waits = [_wait(failure, attempt, policy) for _ in range(300)]
        assert min(waits) < most * 0.1 and most * 0.9 < max(waits) <= most


def test_a_429_halves_what_goes_at_once_and_success_brings_it_back() -> None:
    throttle = Throttle(8)
    sent = time.monotonic()
    throttle.limited(sent, 0)
    throttle.limited(sent, 0)  # sent before the first one came back
    assert throttle.limit == 4
    throttle.limited(time.monotonic(), 0)
    assert throttle.limit == 2
    for _ in range(60):
        throttle.answered()
    assert throttle.limit == 8


def test_a_limited_server_gets_fewer_requests_at_once(server: Server, home: Path, small_requests: None) -> None:
    server.script = [api.refuse(429, "{}", retry_after="0.2") for _ in range(8)]
    server.otherwise = api.answer(delay=0.02)
    texts = [f"text {i}" for i in range(30)]
    rows = opened(server, home).encode(texts, "document")
    np.testing.assert_array_equal(rows, expected(texts))
    assert max(server.served.values()) == 1


# Bad answers


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (api.answer(lambda rows: rows[:-1]), "2 embeddings came back for 3 texts"),
        (api.answer(lambda rows: [*rows, rows[0]]), "4 embeddings came back for 3 texts"),
        (api.answer(lambda rows: [rows[0], rows[1], rows[1]]), "not numbered 0 to 2"),
        (api.answer(lambda rows: [r | {"embedding": [0.5] * 5} for r in rows]), r"8 dimensions.* row of 5"),
        (api.answer(lambda rows: [*rows[:2], rows[2] | {"embedding": [0.5] * 9}]), r"8 dimensions.* row of 9"),
        (api.answer(lambda rows: [rows[0] | {"embedding": [float("nan")] * 8}, *rows[1:]]), "'asthma'.*not finite"),
        (api.answer(lambda rows: [rows[0] | {"embedding": [1e300] * 8}, *rows[1:]]), "'asthma'.*not finite"),
        (api.answer(lambda rows: [rows[0] | {"embedding": [None] * 8}, *rows[1:]]), "'asthma'.*not finite"),
        (api.answer(lambda rows: [rows[0] | {"embedding": None}, *rows[1:]]), "'asthma'.*not finite"),
        (api.answer(lambda rows: [rows[0] | {"embedding": "%%%"}, *rows[1:]]), "'asthma'.*not finite"),
        (api.raw(b"<html>hello</html>"), "not JSON"),
        (api.raw(b"\xff\xfe{"), "not JSON"),
        (api.raw(b""), "not JSON"),
        (api.raw(b"[1, 2]"), "no list of embeddings"),
        (api.raw(b'{"data": "x"}'), "no list of embeddings"),
    ],
)
def test_a_wrong_answer_is_one_line_and_not_asked_for_again(
    server: Server, home: Path, provider: str, step: Any, said: str
) -> None:
    server.otherwise = step
    with pytest.raises(UserError, match=said) as error:
        opened(server, home, provider).encode(TEXTS, "document")
    assert "\n" not in str(error.value)
    assert len(server.requests) == 1


def test_good_rows_beside_a_bad_one_are_kept(server: Server, home: Path) -> None:
    server.script = [api.answer(lambda rows: [rows[0] | {"embedding": [None] * 8}, *rows[1:]])]
    encoder = opened(server, home)
    with pytest.raises(UserError):
        encoder.encode(TEXTS, "document")
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document"), expected(TEXTS))
    assert server.requests[1].texts == TEXTS[:1]


def test_a_failure_stops_new_requests_and_keeps_those_under_way(
    server: Server, home: Path, small_requests: None
) -> None:
    server.script = [api.answer(delay=0.2), api.refuse(400), api.refuse(500, "{}", retry_after="60")]
    server.otherwise = api.answer(delay=0.2)
    encoder = opened(server, home, policy=Policy(concurrency=3, deadline=100))
    started = time.monotonic()
    with pytest.raises(UserError, match="HTTP 400"):
        encoder.encode([f"text {i}" for i in range(20)], "document")
    assert time.monotonic() - started < 5, "nobody waits to try again"
    assert len(server.requests) <= 4
    assert encoder.usage()["cost_usd"] == sum(map(api.tokens, server.served.elements()))
    before = set(server.served)
    server.otherwise = None
    encoder.encode([f"text {i}" for i in range(20)], "document")
    assert before and all(server.served[text] == 1 for text in before)


# The cache


def test_a_second_encoder_asks_for_nothing_and_needs_no_key(
    server: Server, home: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(server, home, provider).encode(TEXTS, "document")
    count = len(server.requests)
    monkeypatch.delenv(f"{provider.upper()}_API_KEY")
    encoder = opened(server, home, provider, budget=0.0)
    np.testing.assert_array_equal(encoder.encode([*TEXTS, TEXTS[0]], "document"), [*first, first[0]])
    assert len(server.requests) == count
    usage = encoder.usage()
    assert (usage["texts"], usage["cached"], usage["tokens"], usage["cost_usd"]) == (4, 4, 0, 0)
    assert usage["cached_tokens"] == sum(map(api.tokens, [*TEXTS, TEXTS[0]]))


def test_only_what_is_missing_is_sent(server: Server, home: Path) -> None:
    opened(server, home).encode(TEXTS[:2], "document")
    encoder = opened(server, home)
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document"), expected(TEXTS))
    assert server.requests[-1].texts == TEXTS[2:]
    assert encoder.usage()["cached"] == 2


def test_answers_of_another_model_role_or_server_are_not_taken(server: Server, home: Path) -> None:
    opened(server, home, "voyage").encode(["gout"], "document")
    opened(server, home, "voyage", repository="other").encode(["gout"], "document")
    opened(server, home, "voyage", document=Side(input_type="query")).encode(["gout"], "document")
    assert len(server.requests) == 3
    with api.serve() as other:
        opened(other, home, "voyage").encode(["gout"], "document")
        assert len(other.requests) == 1


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET vector = substr(vector, 1, 28)",
        "UPDATE vectors SET vector = zeroblob(32)",
        "UPDATE vectors SET vector = 'text'",
        "UPDATE vectors SET tokens = tokens + 1",
        "UPDATE vectors SET checksum = x'00'",
        "DELETE FROM vectors",
    ],
)
def test_a_damaged_row_is_fetched_again(server: Server, home: Path, damage: str) -> None:
    opened(server, home).encode(TEXTS, "document")
    with sqlite3.connect(home / "api" / "openai.sqlite") as db:
        db.execute(damage)
    db.close()
    np.testing.assert_array_equal(opened(server, home).encode(TEXTS, "document"), expected(TEXTS))
    opened(server, home).encode(TEXTS, "document")
    assert len(server.requests) == 2


def test_a_cache_that_is_no_cache_is_one_line_and_left_alone(server: Server, home: Path) -> None:
    file = home / "api" / "openai.sqlite"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"not a database, but somebody's work" * 99)
    with pytest.raises(UserError, match=r"openai.sqlite: this cache .* cannot be used"):
        opened(server, home).encode(TEXTS, "document")
    assert file.read_bytes().startswith(b"not a database") and not server.requests


CHILD = """
import sys
import numpy as np
from support.embedding_server import vector
from r2med.data.cards import Instruction
from r2med.models.api import open_api_encoder, requests
from r2med.models.net.retry import Policy
from r2med.models.cards import ModelCard
from r2med.models.options import Options
from r2med.store import Store

card, address, home = ModelCard.model_validate_json(sys.argv[1]), sys.argv[2], sys.argv[3]
requests.batches = lambda parcels, _: [list(parcels[i : i + 2]) for i in range(0, len(parcels), 2)]
options, words = Options(base_urls=((card.loader, address),)), Instruction(kind="", what="", domain="")
encoder = open_api_encoder(card, words, options, Store(home), policy=Policy(concurrency=4))
texts = [f"text {i}" for i in range(60)]
try:
    np.testing.assert_array_equal(encoder.encode(texts, "document"), [vector(text) for text in texts])
except KeyboardInterrupt:
    sys.exit(77)
print(int(encoder.usage()["cached"]))
"""


def child(server: Server, home: Path, provider: str = "openai") -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", CHILD, card(provider).model_dump_json(), server.address, str(home)]
    settings = environment(OPENAI_API_KEY=KEY, VOYAGE_API_KEY=KEY, PYTHONPATH=Path(__file__).parents[1])
    return subprocess.Popen(arguments, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(happened: Any) -> None:
    limit = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < limit
        time.sleep(0.005)


@pytest.mark.parametrize(("provider", "number"), [("openai", signal.SIGKILL), ("voyage", signal.SIGINT)])
def test_a_run_that_is_killed_is_not_paid_for_twice(
    server: Server, home: Path, provider: str, number: signal.Signals
) -> None:
    server.otherwise = api.answer(delay=0.05)
    with child(server, home, provider) as first:
        wait_for(lambda: len(server.served) >= 16)
        server.otherwise = api.hang  # what is under way now is lost, and all that is lost
        wait_for(lambda: server.at_once == 4 and len(server.requests) * 2 - len(server.served) == 8)
        started = time.monotonic()
        first.send_signal(number)
        assert first.wait(10) == (77 if number == signal.SIGINT else -number), first.communicate()
        assert time.monotonic() - started < 5
        first.communicate()
    before = dict(server.served)
    server.otherwise = None
    second, texts = opened(server, home, provider), [f"text {i}" for i in range(60)]
    np.testing.assert_array_equal(second.encode(texts, "document"), expected(texts))
    assert second.usage()["cached"] == len(before)
    assert len(server.served) == 60 and set(server.served.values()) == {1}


def test_two_processes_share_a_cache(server: Server, home: Path) -> None:
    server.otherwise = api.answer(delay=0.03)
    with child(server, home) as one, child(server, home) as two:
        results = [process.communicate(timeout=30) for process in (one, two)]
    assert (one.returncode, two.returncode) == (0, 0), results
    assert len(server.served) == 60
    assert opened(server, home).encode([f"text {i}" for i in range(60)], "document").shape == (60, 8)
    assert set(server.served.values()) == {1}, "what one fetches the other does not ask for"


# Budget


def test_a_budget_stops_cleanly_and_a_larger_one_continues(server: Server, home: Path, small_requests: None) -> None:
    texts = [f"text number {i}" for i in range(20)]  # $3 each, by the server's bill
    encoder = opened(server, home, budget=40.0)
    with pytest.raises(
        UserError, match=r"budget of \$40.*\$\d+\.\d+ spent, (\d+) texts remain.*larger budget"
    ) as error:
        encoder.encode(texts, "document")
    paid = len(server.requests)
    assert f"{20 - paid} texts remain" in str(error.value)
    assert encoder.usage()["cost_usd"] == 3 * paid <= 40
    assert paid >= 8, "reservations by bytes ($13 to $14 each) are settled by the bill"
    opened(server, home, budget=1000.0).encode(texts, "document")
    assert set(server.served.values()) == {1}


def test_a_budget_of_nothing_sends_nothing(server: Server, home: Path) -> None:
    for changes in ({}, {"price_per_million_tokens": 0.0}):
        with pytest.raises(UserError, match=r"budget of \$0 .* 3 texts remain"):
            opened(server, home, budget=0.0, **changes).encode(TEXTS, "document")
    assert not server.requests


def test_a_budget_is_shared_by_all_encoders_of_a_run(server: Server, home: Path) -> None:
    options = Options(base_urls=(("openai", server.address), ("voyage", server.address)), budget_usd=70.0)
    one = open_api_encoder(card("openai"), WORDS, options, Store(home), policy=FAST)
    one.encode(["one two three four five six"] * 2 + ["a b c d e f g h i"], "document")
    assert one.usage()["cost_usd"] == 15
    two = open_api_encoder(card("voyage"), WORDS, options, Store(home), policy=FAST)
    with pytest.raises(UserError, match=r"\$15\.0+ spent, 1 texts remain"):
        two.encode(["0123456789" * 4], "document")
    assert len(server.requests) == 1


def test_what_fails_costs_nothing_of_the_budget(server: Server, home: Path) -> None:
    server.script = [api.refuse(400)]
    encoder = opened(server, home, budget=30.0)
    with pytest.raises(UserError, match="HTTP 400"):
        encoder.encode(TEXTS, "document")
    encoder.encode(TEXTS, "document")


@pytest.mark.parametrize("limit", [-1.0, float("nan")])
def test_a_budget_that_is_none(limit: float) -> None:
    with pytest.raises(UserError, match="number of dollars"):
        Budget(limit)


def test_a_budget_needs_a_price(server: Server, home: Path) -> None:
    free = card().model_dump(exclude={"price_per_million_tokens"})
    with pytest.raises(UserError, match="price_per_million_tokens"):
        open_api_encoder(ModelCard(**free), WORDS, Options(budget_usd=1.0), Store(home))


# Secrets and surroundings


@pytest.mark.parametrize("status", [400, 401, 429, 500])
def test_a_key_is_shown_nowhere_even_when_the_server_echoes_it(
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
    shown: list[object] = [caplog.text, *capfd.readouterr(), repr(encoder), vars(encoder), encoder.usage()]
    shown += [encoder.describe("query")]
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


def test_a_key_that_no_header_can_hold_is_not_shown(
    server: Server, home: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "sk-sécret")
    with pytest.raises(UserError, match="characters that no key has") as error:
        opened(server, home, provider).encode(TEXTS, "document")
    assert "cret" not in str(error.value)


def test_the_base_url_may_come_from_the_environment(
    server: Server, home: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.address + "/")
    encoder = open_api_encoder(card(provider), WORDS, Options(), Store(home), policy=FAST)
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document"), expected(TEXTS))
    assert encoder.describe("query") == opened(server, home, provider).describe("query")
    assert "127.0.0.1" not in str(encoder.describe("query"))


@pytest.mark.parametrize(
    "url", ["api.openai.com", "ftp://x/v1", "https://", "http://[", "http://u:pw-9@h/v1", "http://h/?k=pw-9"]
)
def test_a_base_url_that_is_none_or_has_secrets_in_it(home: Path, url: str) -> None:
    with pytest.raises(UserError, match="base URL given for openai") as error:
        open_api_encoder(card(), WORDS, Options(base_urls=(("openai", url),)), Store(home))
    assert "pw-9" not in str(error.value)


@pytest.mark.parametrize("module", ["openai", "voyageai"])
def test_a_missing_sdk_names_the_extra(
    server: Server, home: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"r2med\[api\]"):
        opened(server, home, "openai" if module == "openai" else "voyage").encode(TEXTS, "document")


def test_a_card_of_another_kind_is_refused(home: Path) -> None:
    with pytest.raises(UserError, match="no API model"):
        open_api_encoder(ModelCard(name="x", loader="transformers"), WORDS, Options(), Store(home))
