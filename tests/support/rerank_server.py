"""A rerank server on loopback, in the shape of each API: scores pairs, or does what its script says, and remembers."""

import hashlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from support import loopback
from support.loopback import tokens

Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def score(query: str, document: str) -> float:
    """Return what every server says about a pair."""
    return int.from_bytes(hashlib.sha256(f"{query}\0{document}".encode()).digest()[:6]) / 2**48


@dataclass(frozen=True)
class Shape:
    """How one API speaks: written here from its documentation, apart from the table of the package."""

    path: str
    query: str
    documents: str
    needs: frozenset[str]
    """The fields of a request, besides query and documents."""
    wrap: Callable[[list[dict[str, Any]], int, int], Any]
    """(results, tokens, documents) -> the body of an answer."""
    result: Callable[[int, float], dict[str, Any]]
    most: int = 1000


def _usage(count: int) -> dict[str, int]:
    return {"prompt_tokens": count, "total_tokens": count}


SHAPES = {
    "cohere": Shape(
        "/v2/rerank",
        "query",
        "documents",
        frozenset({"model", "top_n"}),
        lambda results, _, count: {
            "id": "1",
            "results": results,
            "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": -(-count // 100)}},
        },
        lambda index, value: {"index": index, "relevance_score": value},
    ),
    "jina": Shape(
        "/v1/rerank",
        "query",
        "documents",
        frozenset({"model", "top_n", "return_documents"}),
        lambda results, bill, _: {"model": "m", "usage": {"total_tokens": bill}, "results": results},
        lambda index, value: {"index": index, "relevance_score": value},
        64,
    ),
    "voyage": Shape(
        "/v1/rerank",
        "query",
        "documents",
        frozenset({"model", "top_k", "return_documents", "truncation"}),
        lambda results, bill, _: {"object": "list", "data": results, "usage": {"total_tokens": bill}},
        lambda index, value: {"relevance_score": value, "index": index},
    ),
    "vllm": Shape(
        "/v1/rerank",
        "query",
        "documents",
        frozenset({"model", "top_n", "truncate_prompt_tokens"}),
        lambda results, bill, _: {"id": "score-1", "model": "m", "usage": _usage(bill), "results": results},
        lambda index, value: {"index": index, "document": {"text": "…"}, "relevance_score": value},
    ),
    "vllm-score": Shape(
        "/v1/score",
        "text_1",
        "text_2",
        frozenset({"model", "truncate_prompt_tokens"}),
        lambda results, bill, _: {"id": "score-1", "object": "list", "data": results, "usage": _usage(bill)},
        lambda index, value: {"index": index, "object": "score", "score": value},
    ),
    "tei": Shape(
        "/rerank",
        "query",
        "texts",
        frozenset({"truncate", "raw_scores"}),
        lambda results, _, __: results,
        lambda index, value: {"index": index, "score": value},
        32,
    ),
}


@dataclass
class Server:
    """What it was asked, what it answered, and what it is to do next."""

    shape: Shape
    address: str = ""
    script: list[Callable[["Exchange"], None]] = field(default_factory=list)
    otherwise: Callable[["Exchange"], None] | None = None
    requests: list[loopback.Request] = field(default_factory=list)
    served: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often a pair was answered."""
    answered: int = 0
    """Number of requests with a right answer."""
    hanging: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True)
class Exchange:
    """A request and the means to answer it."""

    server: Server
    request: loopback.Request
    handler: BaseHTTPRequestHandler

    @property
    def pairs(self) -> list[tuple[str, str]]:
        query = self.request.body[self.server.shape.query]
        return [(query, document) for document in self.request.body[self.server.shape.documents]]

    def send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        with suppress(ConnectionError):
            self.handler.send_response(status)
            fields = {"Content-Type": "application/json", "Content-Length": str(len(content))} | (headers or {})
            for name, value in fields.items():
                self.handler.send_header(name, value)
            self.handler.end_headers()
            self.handler.wfile.write(content)
            self.handler.wfile.flush()


def answer(change: Change = lambda results: results, delay: float = 0.0) -> Callable[[Exchange], None]:
    """Answer right, best document first, or with results changed. What the API would refuse is refused."""

    def step(exchange: Exchange) -> None:
        if delay:
            exchange.server.stopping.wait(delay)
        shape, request = exchange.server.shape, exchange.request
        if request.path != shape.path:
            exchange.send(404, {"detail": "Not Found"})
            return
        if set(request.body) != shape.needs | {shape.query, shape.documents}:
            exchange.send(422, {"error": f"fields {sorted(request.body)}"})
            return
        if len(exchange.pairs) > shape.most:
            exchange.send(413, {"error": "batch size is too large", "error_type": "Validation"})
            return
        values = [score(*pair) for pair in exchange.pairs]
        best = sorted(range(len(values)), key=lambda index: -values[index])
        results = change([shape.result(index, values[index]) for index in best])
        bill = sum(tokens(query) + tokens(document) for query, document in exchange.pairs)
        with exchange.server.lock:
            exchange.server.served.update(exchange.pairs)
            exchange.server.answered += 1
        exchange.send(200, shape.wrap(results, bill, len(values)))

    return step


def shuffled(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return random.sample(results, len(results))


def refuse(status: int, body: Any = None, **headers: str) -> Callable[[Exchange], None]:
    """Answer with an error; `retry_after="1"` becomes the header Retry-After."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(status, body or {"message": "no"}, fields)


def hang(exchange: Exchange) -> None:
    """Say nothing until the server stops."""
    with exchange.server.lock:
        exchange.server.hanging += 1
    exchange.server.stopping.wait()


@contextmanager
def serve(api: str) -> Iterator[Server]:
    """Serve on a free port of loopback, in the shape of an API. The address is a base URL, as a user gives it."""
    state = Server(SHAPES[api])
    with loopback.listening(_handler(state)) as address:
        state.address = address + SHAPES[api].path.rpartition("/")[0]
        try:
            yield state
        finally:
            state.stopping.set()


def _handler(state: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            key = self.headers.get("Authorization", "")
            request = loopback.Request(time.monotonic(), self.path, key, json.loads(content))
            with state.lock:
                state.requests.append(request)
                step = state.script.pop(0) if state.script else state.otherwise or answer()
            step(Exchange(state, request, self))

        def handle(self) -> None:
            with suppress(OSError, ValueError):  # the client closed the connection
                super().handle()

        def finish(self) -> None:
            with suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *_: object) -> None:
            pass

    return Handler
