"""What servers say about an error, made fit for one line: no pages, no line ends, no keys."""

import pytest

from r2med.net.endpoint import endpoint_at
from r2med.net.failures import refused
from r2med.net.retry import given_up
from support.keys import KEY

pytestmark = pytest.mark.usefixtures("marked_keys")

WHERE = endpoint_at("https://host.example/token-in-path/v1", "m", "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", ""),
        ("plain\r\nwords\tof a proxy", ": plain words of a proxy"),
        ("\n<!DOCTYPE html>\n<html><head><title>Bad\n Gateway &amp; co</title></head><body>…", ": Bad Gateway & co"),
        ("<html><body>no title here</body></html>", ""),
        ('<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>', ""),
        ('{"error": {"message": "so\\nnot", "code": 5}}', ": so not"),
        ('{"detail": [{"msg": "so not"}]}', ': [{"msg": "so not"}]'),
        ("colour \x1b[31mred\x1b[0m and \x00 nothing", ": colour [31mred [0m and nothing"),
        (f"the key {KEY} at https://host.example/token-in-path/v1", ": the key [hidden] at [hidden]"),
        ("x" * 500, f": {'x' * 200}…"),
        ("[" * 100_000, f": {'[' * 200}…"),
    ],
)
def test_what_is_kept_of_a_body(body: str, said: str) -> None:
    failure = refused(WHERE, 502, {}, body)
    assert str(failure) == f"m at host.example answered HTTP 502{said}"
    assert (failure.kind, failure.again) == ("server", True)


@pytest.mark.parametrize(
    ("status", "with_key", "without"),
    [
        (401, "refuses the key in OPENAI_API_KEY", "needs a key: set the environment variable OPENAI_API_KEY"),
        (
            403,
            "forbids the request to the key in OPENAI_API_KEY",
            "forbids the request, which had no key: OPENAI_API_KEY is not set",
        ),
    ],
)
def test_a_key_is_blamed_only_where_one_was_sent(
    monkeypatch: pytest.MonkeyPatch, status: int, with_key: str, without: str
) -> None:
    body = '{"error": {"message": "Incorrect API key provided: sk-ab***yz"}}'
    assert str(refused(WHERE, status, {}, body)) == f"m at host.example {with_key} (HTTP {status})"
    monkeypatch.delenv("OPENAI_API_KEY")
    assert str(refused(WHERE, status, {}, body)) == f"m at host.example {without} (HTTP {status})"


def test_who_failed_is_named_once() -> None:
    failure = refused(WHERE, 503, {"retry-after": "7"}, "")
    assert str(given_up(failure, 6)) == (
        "m at host.example answered HTTP 503 (6 attempts); it asks to wait 7 s; "
        "what was paid for is kept: run again to continue"
    )
