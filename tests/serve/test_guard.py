"""Who is let in: with a token whoever sends it, without one whoever calls this machine by its own name."""

import socket

import pytest

from r2med.errors import UserError
from r2med.serve import create_app
from r2med.serve.address import take
from r2med.serve.guard import is_loopback
from support.shelves import request

TOKEN = "tökén-5f1b"
QUESTION = {"queries": ["iron"]}


@pytest.mark.parametrize("path", ["/", "/docs", "/openapi.json", "/health", "/nowhere"])
def test_every_path_needs_the_token(shelf, path):
    app = create_app(shelf, token=TOKEN)
    refused = request(app, "GET", path)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert list(refused.json()) == ["detail"]
    assert request(app, "GET", path, headers={"Authorization": f"Bearer {TOKEN}".encode()}).status_code != 401


@pytest.mark.parametrize(
    "header",
    ["", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff"],
)
def test_what_is_not_the_token_is_refused(shelf, header):
    encoded = header.encode() if "\xff" not in header else header.encode("latin-1")
    answer = request(create_app(shelf, token=TOKEN), json=QUESTION, headers={"Authorization": encoded})
    assert answer.status_code == 401
    assert TOKEN not in answer.text


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_with_the_token_any_name_of_the_server_will_do(shelf, scheme):
    headers = {"Authorization": f"{scheme} {TOKEN}".encode(), "Host": "search.example.org"}
    assert request(create_app(shelf, token=TOKEN), json=QUESTION, headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.8.8.8", "[::1]:8000", "[::1]"])
def test_without_a_token_this_machine_may_be_called_by_its_own_names(shelf, host):
    assert request(create_app(shelf), json=QUESTION, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8000", "localhost.evil.example", "", "[::2]"])
def test_without_a_token_a_page_that_points_its_own_name_here_is_refused(shelf, host):
    answer = request(create_app(shelf), json=QUESTION, headers={"Host": host})
    assert answer.status_code == 403
    assert "127.0.0.1" in answer.json()["detail"]


@pytest.mark.parametrize(("host", "local"), [("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("::1", True)])
def test_only_loopback_is_loopback(host, local):
    assert is_loopback(host) is local


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_a_place_that_others_can_reach_needs_a_token(host):
    with pytest.raises(UserError, match="set R2MED_SERVE_TOKEN"):
        take(host, 0, None)
    place = take(host, 0, TOKEN)
    place.socket.close()


def test_any_free_port_is_told_in_the_address():
    place = take("localhost", 0, None)
    port = place.socket.getsockname()[1]
    place.socket.close()
    assert place.url == f"http://127.0.0.1:{port}"
    assert port > 0


def test_a_port_in_use_is_one_line_at_once_or_when_it_listens():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
            take("127.0.0.1", port, None)
    first = take("127.0.0.1", 0, None)
    port = first.socket.getsockname()[1]
    second = take("127.0.0.1", port, None)  # allowed, as long as neither listens
    first.listen()
    with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
        second.listen()
    first.socket.close()
    second.socket.close()


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1", "a" * 300])
def test_an_address_of_elsewhere_is_one_line(host):
    with pytest.raises(UserError, match="of this machine"):
        take(host, 0, TOKEN)
