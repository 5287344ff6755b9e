"""A hub on loopback: answers what `huggingface_hub` asks for when it downloads one dataset repository."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from support.loopback import listening


@dataclass
class Hub:
    """The repository served, and what it was asked for."""

    repository: str
    revision: str
    files: dict[str, bytes]
    address: str = ""
    stalls_at: str = ""
    """A file of which only half is sent; the rest waits until the server stops."""
    stalled: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)
    sent: list[str] = field(default_factory=list)


@contextmanager
def serve(root: Path, repository: str, revision: str, stalls_at: str = "") -> Iterator[Hub]:
    """Serve a folder as a dataset repository at one revision."""
    files = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    hub = Hub(repository, revision, files, stalls_at=stalls_at)
    with listening(_handler(hub)) as hub.address:
        try:
            yield hub
        finally:
            hub.stopping.set()


@contextmanager
def reachable(hub: Hub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the hub's client of this process talk to a hub on loopback, and use a cache of its own."""
    from huggingface_hub import constants

    with monkeypatch.context() as patch:
        patch.setattr(constants, "ENDPOINT", hub.address)
        patch.setattr(constants, "HF_HUB_CACHE", str(cache))
        template = f"{hub.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        patch.setattr("huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
        patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    listing = f"/api/datasets/{hub.repository}/tree/{hub.revision}"
    about = f"/api/datasets/{hub.repository}/revision/{hub.revision}"  # what older clients list files by
    newest = f"/api/datasets/{hub.repository}"
    main = f"{newest}/revision/main"
    file = f"/datasets/{hub.repository}/resolve/{hub.revision}/"

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, with_body: bool) -> None:
            path = unquote(urlsplit(self.path).path)
            if path == listing:
                self._send(json.dumps([_entry(name, body) for name, body in hub.files.items()]).encode())
            elif path in (about, newest, main):
                siblings = [{"rfilename": name, "size": len(body)} for name, body in hub.files.items()]
                self._send(json.dumps({"id": hub.repository, "sha": hub.revision, "siblings": siblings}).encode())
            elif (name := path.removeprefix(file)) in hub.files:
                self._send_file(name, with_body)
            else:
                self.send_error(404)

        def _send(self, body: bytes) -> None:
            self._head(len(body))
            self.wfile.write(body)

        def _send_file(self, name: str, with_body: bool) -> None:
            body = hub.files[name]
            self._head(len(body), {"ETag": f'"{_blob(body)}"', "X-Repo-Commit": hub.revision})
            if not with_body:
                return
            hub.sent.append(name)
            with suppress(ConnectionError):  # the client may be killed meanwhile
                if name == hub.stalls_at:
                    self.wfile.write(body[: len(body) // 2])
                    hub.stalled.set()
                    hub.stopping.wait()
                else:
                    self.wfile.write(body)

        def _head(self, length: int, headers: dict[str, str] | None = None) -> None:
            self.send_response(200)
            for key, value in {"Content-Length": str(length), **(headers or {})}.items():
                self.send_header(key, value)
            self.end_headers()

    return Handler


def _entry(name: str, body: bytes) -> dict[str, object]:
    return {"type": "file", "path": name, "size": len(body), "oid": _blob(body)}


def _blob(body: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(body), body)).hexdigest()
