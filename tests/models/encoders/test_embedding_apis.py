"""Encoders behind an API: a wrong answer gives a one-line error, and correct rows beside it are saved."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.net.request_loop import Policy
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS, billed_tokens
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import MODELS
from support import embedding_server as api
from support.api_encoders import TEXTS, expected, opened
from support.embedding_server import Server

pytestmark = pytest.mark.usefixtures("marked_keys")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (api.answer(lambda rows: rows[:-1]), "2 embeddings were returned for 3 texts"),
        (api.answer(lambda rows: [*rows, rows[0]]), "4 embeddings were returned for 3 texts"),
        (api.answer(lambda rows: [rows[0], rows[1], rows[1]]), "not numbered 0 to 2"),
        (api.answer(lambda rows: [r | {"embedding": [0.5] * 5} for r in rows]), r"8 dimensions, but it returned 5"),
        (api.answer(lambda rows: [*rows[:2], rows[2] | {"embedding": [0.5] * 9}]), r"8 dimensions, but it returned 9"),
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
def test_a_wrong_answer_gives_a_one_line_error_and_is_not_requested_again(
    server: Server, home: Path, provider: str, step: Any, said: str
) -> None:
    server.otherwise = step
    with pytest.raises(UserError, match=said) as error:
        opened(server, home, provider).encode(TEXTS, "document")
    assert "\n" not in str(error.value)
    assert len(server.requests) == 1


def test_good_rows_beside_a_bad_one_are_saved(server: Server, home: Path) -> None:
    server.script = [api.answer(lambda rows: [rows[0] | {"embedding": [None] * 8}, *rows[1:]])]
    encoder = opened(server, home)
    with pytest.raises(UserError):
        encoder.encode(TEXTS, "document")
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document").vectors, expected(TEXTS))
    assert server.requests[1].texts == TEXTS[:1]


def test_a_failure_stops_new_requests_and_saves_running_ones(server: Server, home: Path, small_requests: None) -> None:
    refused = threading.Event()

    def refuse(exchange: api.Exchange) -> None:
        api.refuse(400)(exchange)
        refused.set()

    def answer_later(exchange: api.Exchange) -> None:
        refused.wait()
        api.answer(delay=0.2)(exchange)

    server.script = [answer_later, refuse, api.refuse(500, "{}", retry_after="120")]
    server.otherwise = api.answer(delay=0.2)
    encoder = opened(server, home, policy=Policy(concurrency=3, deadline=200))
    started = time.monotonic()
    with pytest.raises(UserError, match="HTTP 400"):
        encoder.encode([f"text {i}" for i in range(20)], "document")
    assert time.monotonic() - started < 60, "nobody waits to try again"
    assert len(server.requests) <= 4
    assert encoder._budget.spent == sum(map(api.tokens, server.served.elements()))
    before = set(server.served)
    server.otherwise = None
    encoder.encode([f"text {i}" for i in range(20)], "document")
    assert before and all(server.served[text] == 1 for text in before)


@pytest.mark.parametrize("tokens", [10**400, -1, True, None, 1.5])
def test_an_impossible_bill_is_replaced_by_the_expected_number(tokens: Any) -> None:
    assert billed_tokens({"usage": {"total_tokens": tokens}}, 7) == 7


# An API of one's own is a card


NAMED_OTHERWISE = """
path = "/embed"
texts = "texts"
input_type = "purpose"
settings = { size = 8 }
rows = "embeddings.float"
vector = ""
tokens = "meta.billed.tokens"
texts_per_request = 2
"""
MODEL = """
loader = "otherwise"
repository = "their-model"
dimension = 8
price_per_million_tokens = 1_000_000.0
[query]
input_type = "ask"
[document]
input_type = "read"
"""


@pytest.fixture
def own_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the card of an API whose fields have other names than those of OpenAI, in a folder of the user."""
    for name, text in (("embedding-apis/otherwise.toml", NAMED_OTHERWISE), ("models/theirs.toml", MODEL)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path))
    return tmp_path / "embedding-apis/otherwise.toml"


@pytest.mark.parametrize("is_own_server", [True, False])
def test_an_api_whose_fields_have_other_names_is_a_card(
    server: Server, home: Path, own_api: Path, monkeypatch: pytest.MonkeyPatch, is_own_server: bool
) -> None:
    if not is_own_server:
        own_api.write_text(NAMED_OTHERWISE + f'urls = [["", "{server.address}"]]\n')
        monkeypatch.setenv("OTHERWISE_API_KEY", "secret-key")

    def answer(exchange: api.Exchange) -> None:
        rows = [api.vector(text).tolist() for text in exchange.request.body["texts"]]
        body = {"embeddings": {"float": rows}, "meta": {"billed": {"tokens": 5}}}
        exchange.send(200, json.dumps(body).encode())

    server.otherwise = answer
    runtime = Runtime(endpoints=(("otherwise", server.address),) if is_own_server else ())
    encoder = open_encoder(MODELS["theirs"], ANY_DATASET, runtime, Store(home))
    encoded = encoder.encode(TEXTS, "document")
    np.testing.assert_array_equal(encoded.vectors, expected(TEXTS))
    assert (encoded.cost.tokens, encoded.cost.dollars) == (10, 10.0)
    sent = [request.body for request in server.requests]
    about = {"model": "their-model", "purpose": "read", "size": 8}
    assert sorted(sent, key=str) == sorted([{**about, "texts": TEXTS[:2]}, {**about, "texts": TEXTS[2:]}], key=str)


def test_settings_that_may_change_vectors_are_part_of_their_key(home: Path, own_api: Path) -> None:
    keys = []
    for text in (NAMED_OTHERWISE, NAMED_OTHERWISE.replace("8", "16"), NAMED_OTHERWISE.replace("= 2", "= 3")):
        own_api.write_text(text)
        runtime = Runtime(endpoints=(("otherwise", "http://127.0.0.1:1"),))
        keys.append(open_encoder(MODELS["theirs"], ANY_DATASET, runtime, Store(home)).key("document"))
    assert keys[0] != keys[1] and keys[0] == keys[2]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("textz = 'x'", r"otherwise\.toml: .*textz"),
        ("texts_per_request = 0", r"otherwise\.toml: texts_per_request"),
        ("tokenizer = 'words'", r"otherwise\.toml: tokenizer.*tiktoken:ENCODING or hub:REPOSITORY"),
        ("urls = [['sk-', 'https://x/v1']]", r"otherwise\.toml: urls.*must be for every key"),
    ],
)
def test_a_wrong_card_gives_one_line_that_names_its_file(own_api: Path, line: str, said: str) -> None:
    own_api.write_text(line)
    with pytest.raises(UserError, match=said) as error:
        EMBEDDING_APIS.card("otherwise")
    assert "\n" not in str(error.value)


def test_a_server_without_an_address_is_missing(own_api: Path) -> None:
    missing = EMBEDDING_APIS["otherwise"].missing(Setup())
    assert missing == "the address of otherwise is not known: set OTHERWISE_BASE_URL"
