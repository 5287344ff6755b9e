"""Downloads: the size and the redirects are limited, and addresses are checked."""

import hashlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.download import download
from support.loopback import listening, nobody_listening

CONTENT = bytes(range(256)) * 40


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        target = {"/loop": "/loop", "/once": "/file", "/elsewhere": "ftp://example.org/x"}.get(self.path)
        found = self.path == "/file" and self.headers["Accept-Encoding"] == "identity"
        self.send_response(302 if target else 200 if found else 404)
        if target:
            self.send_header("Location", target)
        self.end_headers()
        if found:
            self.wfile.write(CONTENT)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with listening(Handler) as running:
        yield running


def test_a_file_is_saved_and_its_digest_returned(address: str, tmp_path: Path) -> None:
    for path in ("/file", "/once"):
        assert download(f"{address}{path}", tmp_path / "x", 20_000) == hashlib.sha256(CONTENT).hexdigest()
        assert (tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/file", "is larger than 10,000 bytes"),
        ("/loop", "redirects more than 5 times"),
        ("/elsewhere", "the address is not a URL"),
        ("/nothing", "answered HTTP 404: check the address"),
    ],
)
def test_anything_else_is_one_line(address: str, tmp_path: Path, path: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        download(f"{address}{path}", tmp_path / "x", 10_000)


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "file:///etc/passwd", "https://me:secret@host/x", "https://", "http://[x"]
)
def test_only_plain_addresses_of_the_web_are_asked(tmp_path: Path, url: str) -> None:
    with pytest.raises(UserError, match=r"not a URL such as https://HOST/FILE, or it contains a password") as error:
        download(url, tmp_path / "x", 10)
    assert "secret" not in str(error.value)


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with nobody_listening() as url, pytest.raises(UserError, match="did not send the file"):
        download(f"{url}/file", tmp_path / "x", 10)
