"""An embedding API on loopback, as OpenAI and Voyage have it: answers, or does what its script says, and remembers."""

import base64
import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import numpy.typing as npt

from support import loopback
from support.loopback import tokens

DIMENSION = 8


def vector(text: str) -> npt.NDArray[np.float32]:
    """Return what this server says about a text."""
    numbers = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype="<u4").astype(np.float32)
    return numbers / np.float32(2**32)


class Request(loopback.Request):
    """One request as it came."""

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


@dataclass
class Server:
    """What it was asked, what it answered, and what it is to do next."""

    address: str = ""
    script: list[Callable[["Exchange"], None]] = field(default_factory=list)
    """Steps for the next requests, one each; after them it answers."""
    otherwise: Callable[["Exchange"], None] | None = None
    """What it does after the script, instead of answering."""
    requests: list[Request] = field(default_factory=list)
    served: Counter[str] = field(default_factory=Counter)
    """How often a text was answered whole."""
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Exchange:
    """A request and the means to answer it."""

    server: Server
    request: Request
    handler: BaseHTTPRequestHandler
    over: Callable[[], None]
    """Count the request as no longer under way."""

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None, cut: int | None = None) -> None:
        if cut is None:
            self.over()  # before its last byte: who has it may send the next request at once
        with suppress(ConnectionError):  # the client may be gone
            self.handler.send_response(status)
            fields = {"Content-Type": "application/json", "Content-Length": str(len(body))} | (headers or {})
            for name, value in fields.items():
                self.handler.send_header(name, value)
            self.handler.end_headers()
            self.handler.wfile.write(body[:cut])
            self.handler.wfile.flush()

    def drop(self) -> None:
        """Close the connection with a reset, as a server does that dies."""
        self.handler.close_connection = True
        with suppress(OSError):
            self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.handler.connection.close()


def answer(
    rows: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda rows: rows,
    *,
    decimals: bool = False,
    delay: float = 0.0,
) -> Callable[[Exchange], None]:
    """Answer right, or with rows changed."""

    def step(exchange: Exchange) -> None:
        if delay:
            exchange.server.stopping.wait(delay)
        body = _body(exchange.request, rows, decimals)
        with exchange.server.lock:
            exchange.server.served.update(exchange.request.texts)
        exchange.send(200, body)

    return step


def shuffled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return random.sample(rows, len(rows))


def refuse(status: int, body: str = '{"error": {"message": "no"}}', **headers: str) -> Callable[[Exchange], None]:
    """Answer with an error; `retry_after="1"` becomes the header Retry-After."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, body.encode(), fields)


def echo_key(status: int) -> Callable[[Exchange], None]:
    """Answer with an error that has the client's key in its body, as careless gateways do."""

    def step(exchange: Exchange) -> None:
        said = f"bad request with Authorization: {exchange.request.key}"
        exchange.send(status, json.dumps({"error": {"message": said}, "detail": said}).encode())

    return step


def raw(body: bytes) -> Callable[[Exchange], None]:
    return lambda exchange: exchange.send(200, body)


def hang(exchange: Exchange) -> None:
    """Say nothing until the server stops."""
    exchange.server.stopping.wait()


def close(exchange: Exchange) -> None:
    exchange.drop()


def close_half_way(exchange: Exchange) -> None:
    body = _body(exchange.request, lambda rows: rows, decimals=False)
    exchange.send(200, body, cut=len(body) // 2)
    exchange.handler.close_connection = True


def stall_half_way(exchange: Exchange) -> None:
    body = _body(exchange.request, lambda rows: rows, decimals=False)
    exchange.send(200, body, cut=len(body) // 2)
    exchange.server.stopping.wait()
    exchange.handler.close_connection = True


def trickle(exchange: Exchange) -> None:
    """Never be silent for long, and never come to an end."""
    exchange.send(200, b" " * 10_000, cut=1)
    with suppress(OSError, ValueError):
        while not exchange.server.stopping.wait(0.05):
            exchange.handler.wfile.write(b" ")
    exchange.handler.close_connection = True


@contextmanager
def serve() -> Iterator[Server]:
    """Serve on a free port of loopback."""
    state = Server()
    with loopback.listening(_handler(state)) as address:
        state.address = f"{address}/v1"
        try:
            yield state
        finally:
            state.stopping.set()


def _body(request: Request, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], decimals: bool) -> bytes:
    rows = []
    for index, text in enumerate(request.texts):
        numbers = vector(text)
        coded = numbers.tolist() if decimals else base64.b64encode(numbers.tobytes()).decode()
        rows.append({"object": "embedding", "index": index, "embedding": coded})
    bill = sum(map(tokens, request.texts))
    usage = {"prompt_tokens": bill, "total_tokens": bill}
    return json.dumps({"object": "list", "data": change(rows), "model": request.body["model"], "usage": usage}).encode()


def _handler(state: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections stay open between requests, as the providers' do

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers.get("Authorization", "")
            request = Request(time.monotonic(), self.path, key, json.loads(content))
            with state.lock:
                state.requests.append(request)
                step = state.script.pop(0) if state.script else state.otherwise or answer()
                under_way = [request]
                state.at_once += 1
                state.most_at_once = max(state.most_at_once, state.at_once)

            def over() -> None:
                with state.lock:
                    state.at_once -= len(under_way)
                    under_way.clear()

            try:
                step(Exchange(state, request, self, over))
            finally:
                over()

        def handle(self) -> None:
            with suppress(OSError, ValueError):  # the client or a step closed the connection
                super().handle()

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *_: object) -> None:
            pass

    return Handler
