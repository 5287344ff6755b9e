"""Addresses and keys: invalid URLs are refused, and no secret is shown."""

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import endpoint_at


@pytest.mark.parametrize(
    "url", [" ", "\t", "localhost:80", "ftp://h/v1", "http://", "http://h:99999/v1", "http://h/\x00"]
)
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="the base URL given for m is not a URL; it should look like https://HOST/v1"):
        endpoint_at(url, "m", "M_KEY")


@pytest.mark.parametrize("url", ["http://u:p@h/v1", "http://h/v1?key=x", "http://h/v1#x"])
def test_an_address_with_a_secret_in_it_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="the key goes in M_KEY"):
        endpoint_at(url, "m", "M_KEY")


def test_servers_are_distinguished_without_showing_their_address() -> None:
    one, other = (endpoint_at(f"http://{host}:80/token/v1/", "m", "M_KEY") for host in ("a.example", "b.example"))
    assert one.digest != other.digest and "example" not in one.digest
    assert one.server == "m at a.example:80" and "token" not in repr(one)
    assert endpoint_at("", "m", "M_KEY").digest == "" and endpoint_at("", "m", "M_KEY").server == "m"
    assert [endpoint_at(url, "m", "K").is_local for url in ("http://[::1]:5", "http://localhost", "http://h")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("url", ["", "https://elsewhere.example/v1", "http://localhost:8000/v1", "http://127.0.0.1/v1"])
def test_a_key_is_sent_only_where_no_one_can_read_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M_KEY", "s3cret-key")
    assert endpoint_at(url, "m", "M_KEY").key() == "s3cret-key"


def test_a_key_is_not_sent_in_clear_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M_KEY", "s3cret-key")
    with pytest.raises(UserError, match="over which M_KEY would be sent without encryption") as refused:
        endpoint_at("http://elsewhere.example/v1", "m", "M_KEY").key()
    assert "s3cret" not in str(refused.value)
