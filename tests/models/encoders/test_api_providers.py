"""Encoders behind an API: a wrong answer gives a one-line error, and correct rows beside it are saved."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.retry import Policy
from r2med.models.encoders.api_providers import billed_tokens
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
