"""What cannot be served is one clear line with a 4xx, never a 500."""

import asyncio
import json

import pytest

from r2med.errors import UserError
from r2med.serve import Limits, create_app
from support.shelves import request

LIMITS = Limits(body=100_000, queries=5, characters=200, topk=50, documents=100)


@pytest.fixture(scope="module")
def app(shelf):
    return create_app(shelf, LIMITS)


def line_of(answer, status):
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["detail"]
    line = answer.json()["detail"]
    assert isinstance(line, str) and line and "\n" not in line and len(line) < 200
    return line


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "line 1, column 2"),
        (b'{"queries": ["iron"],}', 400, "not JSON"),
        (b'{"queries": ["\xff"]}', 400, "not UTF-8: byte 14"),
        ('{"queries": ["iron"]}'.encode("utf-16"), 400, "not UTF-8"),
        (b"[" * 90_000, 400, "nested too deeply"),
        (b'{"queries": ' + b"[" * 40_000 + b"]" * 40_000 + b"}", 400, "nested too deeply"),
        (b'{"queries": ["iron"], "topk": NaN}', 400, "no NaN"),
        (b'{"queries": ["iron"], "topk": -Infinity}', 400, "no -Infinity"),
        (b'{"queries": ["iron"], "topk": ' + b"9" * 5000 + b"}", 400, "not JSON"),
        (b"null", 422, "must be an object such as"),
        (b'["iron"]', 422, "must be an object such as"),
        (b'"iron"', 422, "must be an object such as"),
        (b"{}", 422, "queries: it is missing"),
        (b'{"queries": null}', 422, "queries: input should be a valid list"),
        (b'{"queries": "iron"}', 422, "queries: input should be a valid list"),
        (b'{"queries": {"0": "iron"}}', 422, "queries: input should be a valid list"),
        (b'{"queries": ["iron", 7]}', 422, "queries[1]: input should be a valid string"),
        (b'{"queries": ["iron", null]}', 422, "queries[1]: input should be a valid string"),
        (b'{"queries": [["iron"]]}', 422, "queries[0]: input should be a valid string"),
        (b'{"queries": ["iron", ""]}', 422, "queries[1]: it is empty"),
        (b'{"queries": [" \\n\\t"]}', 422, "queries[0]: it is empty"),
        (b'{"queries": ["\\ud800"]}', 422, "queries[0]"),
        (json.dumps({"queries": ["x" * 201]}).encode(), 422, "queries[0]: 201 characters are more than 200"),
        (json.dumps({"queries": ["iron"] * 6}).encode(), 422, "queries: 6 are more than this server takes at once, 5"),
        (b'{"queries": ["iron"], "topk": 51}', 422, "topk: it must be from 1 to 50"),
        (b'{"queries": ["iron"], "topk": 0}', 422, "topk: it must be from 1 to 50"),
        (b'{"queries": ["iron"], "topk": -1}', 422, "topk: it must be from 1 to 50"),
        (b'{"queries": ["iron"], "topk": 99999999999999999999999}', 422, "topk"),
        (b'{"queries": ["iron"], "topk": 1e400}', 422, "topk: input should be a valid integer"),
        (b'{"queries": ["iron"], "topk": 2.5}', 422, "topk: input should be a valid integer"),
        (b'{"queries": ["iron"], "topk": "3"}', 422, "topk: input should be a valid integer"),
        (b'{"queries": ["iron"], "topk": true}', 422, "topk: input should be a valid integer"),
        (b'{"queries": ["a", "b", "c"], "topk": 34}', 422, "3 queries × topk 34 are more documents than 100"),
        (b'{"queries": ["iron"], "return_scores": "yes"}', 422, "return_scores: input should be a valid boolean"),
        (b" " * 100_001, 413, "larger than this server takes, 100,000 bytes"),
    ],
)
def test_a_fault_is_one_line(app, body, status, says):
    assert says in line_of(request(app, content=body), status)


def test_what_is_just_within_the_limits_is_served(app):
    body = json.dumps({"queries": ["x" * 200, "iron"], "topk": 50}).encode()
    assert request(app, content=body + b" " * (100_000 - len(body))).status_code == 200
    assert request(app, json={"queries": ["iron"] * 5, "topk": 20}).status_code == 200


def test_characters_that_only_look_odd_are_searched(app):
    odd = ["\x00", "iron\u202e", "😀", "ﬁ", "a\r\nb"]
    assert request(app, json={"queries": odd}).status_code == 200


def test_a_body_that_is_too_large_is_not_read_to_its_end(app):
    read = []

    async def endless():
        while True:
            read.append(10_000)
            yield b" " * 10_000

    answer = request(app, content=endless())
    assert "larger" in line_of(answer, 413)
    assert sum(read) <= 120_000


def test_a_body_whose_length_is_told_to_be_too_large_is_not_read_at_all(app):
    async def never():
        raise AssertionError("it was read")
        yield b""

    answer = request(app, content=never(), headers={"content-length": "10000000"})
    assert "larger" in line_of(answer, 413)
    huge = request(app, content=never(), headers={"content-length": "9" * 30})
    assert "larger" in line_of(huge, 413)


def test_a_body_that_does_not_come_is_not_waited_for_for_ever(shelf):
    app = create_app(shelf, Limits(seconds=1))

    async def stalled():
        yield b'{"queries"'
        await asyncio.sleep(3600)

    assert "within 1 seconds" in line_of(request(app, content=stalled()), 408)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/retrieve", 405), ("PUT", "/retrieve", 405), ("POST", "/health", 405), ("GET", "/../etc/passwd", 404)],
)
def test_other_paths_and_methods_are_one_line_too(app, method, path, status):
    line_of(request(app, method, path), status)


def test_limits_must_leave_something_to_ask():
    with pytest.raises(UserError, match="limit of topk must be at least 1, not 0"):
        Limits(topk=0)
