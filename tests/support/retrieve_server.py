"""A /retrieve server on loopback that answers, and misbehaves on request."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from support.loopback import listening


@dataclass
class RetrieveServer:
    """What it was asked, and what it is to do next."""

    address: str = ""
    script: list["Step"] = field(default_factory=list)
    """Steps for the next requests, one each; after them it answers."""
    otherwise: "Step | None" = None
    """What it does when it has no other step, instead of answering."""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    version: int = 1
    """Goes into every document: a server whose corpus changes."""
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{self.address}/retrieve"

    def found(self, query: str, topk: int) -> list[dict[str, Any]]:
        names = ["a", "elsewhere-1", "elsewhere-2", "b", *(f"more-{number}" for number in range(topk))]
        text = f"Title\n{query} in version {self.version}"
        return [
            {"document": {"id": name, "contents": text}, "score": 1 / rank} for rank, name in enumerate(names[:topk], 1)
        ]


Step = Callable[[RetrieveServer, BaseHTTPRequestHandler, dict[str, Any]], None]


def answer(server: RetrieveServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    result = [server.found(query, body["topk"]) for query in body["queries"]]
    send(handler, 200, json.dumps({"result": result}).encode())


def status(code: int, body: str = '{"detail": "no"}', **headers: str) -> Step:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda server, handler, _: send(handler, code, body.encode(), fields)


def raw(body: bytes) -> Step:
    return lambda server, handler, _: send(handler, 200, body)


def shaped(result: Any) -> Step:
    """Answer with this as the result of every request."""
    return raw(json.dumps({"result": result}).encode())


def hang(server: RetrieveServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    server.stopping.wait()


def drop(server: RetrieveServer, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
    handler.connection.close()


def send(handler: BaseHTTPRequestHandler, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    handler.send_response(code)
    for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serve(otherwise: Step | None = None) -> Iterator[RetrieveServer]:
    """Serve on a free port of loopback."""
    server = RetrieveServer(otherwise=otherwise)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(body)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            step = server.script.pop(0) if server.script else server.otherwise or answer
            try:
                step(server, self, body)
            except OSError:  # the client has had enough
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    with listening(Handler) as server.address:
        try:
            yield server
        finally:
            server.stopping.set()
