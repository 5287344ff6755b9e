"""Encoders behind an API: which requests are retried, for how long, and how many run at once."""

import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.request_loop import Policy
from support import embedding_server as api
from support.api_encoders import HASTY, TEXTS, expected, opened
from support.embedding_server import Server
from support.loopback import nobody_listening

pytestmark = pytest.mark.usefixtures("marked_keys")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_temporary_errors_are_retried(server: Server, home: Path, provider: str, status: int) -> None:
    server.script = [api.refuse(status), api.refuse(status)]
    encoder = opened(server, home, provider)
    np.testing.assert_array_equal(encoder.encode(TEXTS, "document").vectors, expected(TEXTS))
    assert len(server.requests) == 3


@pytest.mark.parametrize("fault", [api.close, api.close_half_way, api.hang, api.stall_half_way])
def test_broken_connections_are_retried(server: Server, home: Path, provider: str, fault: Any) -> None:
    server.script = [fault]
    np.testing.assert_array_equal(
        opened(server, home, provider, HASTY).encode(TEXTS, "document").vectors, expected(TEXTS)
    )
    assert len(server.requests) >= 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_permanent_errors_are_not_retried(server: Server, home: Path, provider: str, status: int) -> None:
    server.otherwise = api.refuse(status, '{"error": {"message": "so\\nnot"}, "detail": "so not"}')
    with pytest.raises(UserError, match=f"HTTP {status}") as error:
        opened(server, home, provider).encode(TEXTS, "document")
    assert len(server.requests) == 1
    assert "\n" not in str(error.value)
    assert ("API_KEY" in str(error.value)) == (status in (401, 403))
    assert ("so not" in str(error.value)) == (status not in (401, 403))


def test_an_account_without_money_is_not_retried(server: Server, home: Path) -> None:
    body = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    server.otherwise = api.refuse(429, body)
    with pytest.raises(UserError, match="exceeded your current quota"):
        opened(server, home).encode(TEXTS, "document")
    assert len(server.requests) == 1


def test_the_number_of_attempts_is_limited(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.refuse(500)
    with pytest.raises(UserError, match=r"HTTP 500.*6 attempts.*run again to continue"):
        opened(server, home, provider).encode(TEXTS, "document")
    assert len(server.requests) == 6


def test_the_deadline_ends_a_request_that_never_finishes(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.trickle
    with pytest.raises(UserError, match=r"no complete answer within 0\.5 s; paid answers") as error:
        opened(server, home, provider, Policy(first_wait=0.001, idle=60, deadline=0.5)).encode(TEXTS, "document")
    assert "attempts" not in str(error.value) and len(server.requests) <= 1


def test_a_server_that_is_down_gives_a_one_line_error(home: Path, provider: str) -> None:
    said = rf"connection to {provider} at 127.0.0.1:\d+ failed \(\w+\); check that it is running.* \(6 attempts\)"
    with nobody_listening() as address, pytest.raises(UserError, match=said):
        opened(Server(address), home, provider).encode(TEXTS, "document")


def test_retry_after_is_waited_for(server: Server, home: Path, provider: str) -> None:
    server.script = [api.refuse(429, "{}", retry_after="0.6")]
    opened(server, home, provider).encode(TEXTS, "document")
    assert server.requests[1].at - server.requests[0].at >= 0.6


def test_retry_after_may_be_a_date(server: Server, home: Path) -> None:
    begun, begun_at = time.time(), time.monotonic()
    due = int(begun + 2)  # a date has whole seconds
    server.script = [api.refuse(503, "{}", retry_after=formatdate(due, usegmt=True))]
    opened(server, home).encode(TEXTS, "document")
    assert server.requests[1].at - begun_at >= due - begun - 0.05


def test_a_wait_beyond_the_deadline_is_not_started(server: Server, home: Path, provider: str) -> None:
    server.otherwise = api.refuse(429, "{}", retry_after="3600")
    with pytest.raises(UserError, match="asks to wait 3600 s"):
        opened(server, home, provider).encode(TEXTS, "document")
    assert len(server.requests) == 1


def test_a_limited_server_gets_fewer_requests_at_once(server: Server, home: Path, small_requests: None) -> None:
    server.script = [api.refuse(429, "{}", retry_after="0.2") for _ in range(8)]
    server.otherwise = api.answer(delay=0.02)
    texts = [f"text {i}" for i in range(30)]
    rows = opened(server, home).encode(texts, "document").vectors
    np.testing.assert_array_equal(rows, expected(texts))
    assert max(server.served.values()) == 1
