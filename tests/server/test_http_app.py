"""The application: who may ask, how a body is read, what is described to programs and persons."""

import asyncio

import pytest

from r2med import __version__
from r2med.server import limits
from r2med.server.http_app import create_app, is_loopback
from r2med.server.served_corpus import ServedData
from support.served_app import request

TOKEN = "tökén-5f1b"
BODY = {"queries": ["iron"]}


@pytest.fixture(scope="module")
def app(served):
    return create_app(ServedData(served))


def detail_of(answer, status):
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["detail"]
    detail = answer.json()["detail"]
    assert isinstance(detail, str) and detail and "\n" not in detail and len(detail) < 200
    return detail


def test_a_body_that_is_too_large_is_not_read_to_its_end(app):
    read = []

    async def endless():
        while True:
            read.append(10_000)
            yield b" " * 10_000

    assert "too large" in detail_of(request(app, content=endless()), 413)
    assert sum(read) <= limits.MAX_BODY + 20_000


@pytest.mark.parametrize("length", ["10000000", "9" * 30])
def test_a_body_whose_declared_length_is_too_large_is_not_read_at_all(app, length):
    async def never():
        raise AssertionError("it was read")
        yield b""

    assert "too large" in detail_of(request(app, content=never(), headers={"content-length": length}), 413)


def test_a_body_that_does_not_arrive_in_time_is_a_408(app, monkeypatch):
    monkeypatch.setattr(limits, "BODY_SECONDS", 1)

    async def stalled():
        yield b'{"queries"'
        await asyncio.sleep(3600)

    assert "within 1 seconds" in detail_of(request(app, content=stalled()), 408)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/retrieve", 405), ("PUT", "/retrieve", 405), ("POST", "/health", 405), ("GET", "/../etc/passwd", 404)],
)
def test_other_paths_and_methods_are_refused_in_one_line(app, method, path, status):
    detail_of(request(app, method, path), status)


@pytest.mark.parametrize("path", ["/", "/openapi.json", "/health", "/nowhere"])
def test_every_path_needs_the_token(served, path):
    app = create_app(ServedData(served), token=TOKEN)
    refused = request(app, "GET", path)
    detail_of(refused, 401)
    assert refused.headers["www-authenticate"] == "Bearer"
    assert request(app, "GET", path, headers={"Authorization": f"Bearer {TOKEN}".encode()}).status_code != 401


@pytest.mark.parametrize(
    "header",
    ["", TOKEN, f"Basic {TOKEN}", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff"],
)
def test_anything_but_the_token_is_refused(served, header):
    encoded = header.encode() if "\xff" not in header else header.encode("latin-1")
    answer = request(create_app(ServedData(served), token=TOKEN), json=BODY, headers={"Authorization": encoded})
    assert TOKEN not in detail_of(answer, 401)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_with_the_token_the_server_may_be_called_by_any_name(served, scheme):
    headers = {"Authorization": f"{scheme} {TOKEN}".encode(), "Host": "search.example.org"}
    assert request(create_app(ServedData(served), token=TOKEN), json=BODY, headers=headers).status_code == 200


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.8.8.8", "[::1]:8000", "[::1]"])
def test_without_a_token_the_server_may_be_called_by_the_names_of_loopback(app, host):
    assert request(app, json=BODY, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example:8000", "localhost.evil.example", "", "[::2]", "[::1].evil.com", "[::1"],
)
def test_without_a_token_a_page_that_points_its_own_name_here_is_refused(app, host):
    assert "127.0.0.1" in detail_of(request(app, json=BODY, headers={"Host": host}), 403)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_a_page_of_another_site_is_refused_whatever_it_asks(app, method, headers):
    assert request(app, method, json=BODY, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}],
)
def test_a_page_of_another_site_is_refused_even_if_a_proxy_adds_the_token(served, headers):
    app = create_app(ServedData(served), token="secret")
    named = {"Host": "search.ward.example", "Authorization": "Bearer secret"}
    assert "Host" in detail_of(request(app, json=BODY, headers=named | headers), 403)
    own = {"Origin": "https://search.ward.example", "Sec-Fetch-Site": "same-origin"}
    assert request(app, json=BODY, headers=named | own).status_code == 200


def test_pages_of_the_server_itself_are_answered(app):
    own = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert request(app, json=BODY, headers=own).status_code == 200
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert request(app, "GET", "/", headers=followed).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@pytest.mark.parametrize("path", ["/retrieve", "/search", "/nowhere"])
def test_a_post_that_is_not_json_is_refused(app, kind, path):
    detail_of(request(app, url=path, content=b'{"queries": ["iron"]}', headers={"Content-Type": kind}), 415)


@pytest.mark.parametrize(
    ("host", "expected"), [("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("::1", True), ("localhost", True)]
)
def test_only_loopback_is_loopback(host, expected):
    assert is_loopback(host) is expected


def test_health_says_what_is_served(app):
    answer = request(app, "GET", "/health")
    about = {"dataset": "small", "documents": 4, "retriever": "bm25", "version": __version__}
    assert answer.json() == {"status": "ok", **about, "waiting": 0}


def test_the_openapi_description_has_the_request_and_the_responses(app):
    description = request(app, "GET", "/openapi.json").json()
    operation = description["paths"]["/retrieve"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == {"queries", "topk", "return_scores"}
    assert schema["required"] == ["queries"]
    assert {"200", "400", "408", "413", "422", "500", "503"} <= set(operation["responses"])
    assert "422" not in description["paths"]["/health"]["get"]["responses"]
