"""The HTTP application: it checks who asks, reads a request, queues its search and writes the response."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Iterator
from html import escape
from typing import Any, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from r2med import __version__
from r2med.serve.request_limits import HTTPError, Limits, unavailable
from r2med.serve.retrieve_protocol import RetrieveRequest, RetrieveResponse, read_request, write_response
from r2med.serve.search_queue import SearchQueue
from r2med.serve.served_corpus import ServedCorpus

T = TypeVar("T")


class Health(BaseModel):
    """What is served here."""

    status: str
    dataset: str
    documents: int
    retriever: str
    version: str
    waiting: int = Field(description="Requests that wait for the search.")


class Detail(BaseModel):
    """Why a request was not served, in one line."""

    detail: str


def create_app(served: ServedCorpus, limits: Limits | None = None, token: str | None = None) -> FastAPI:
    """Return the application that serves a corpus; without a token, to programs of this machine only.

    Its queue and its limits are at `app.state`, for the server: it closes the queue when it is stopped.
    """
    limits = limits or Limits()
    queue = SearchQueue(served.search, limits.waiting, limits.batch)
    app = FastAPI(title="r2med serve", version=__version__, docs_url=None, redoc_url=None)
    app.state.queue = queue
    app.state.limits = limits
    app.add_middleware(Guard, token=token)

    @app.exception_handler(HTTPError)
    async def refuse(request: Request, error: HTTPError) -> Response:
        return _refusal(error)

    @app.post("/retrieve", summary="Search", response_model=None, responses=_RESPONSES, openapi_extra=_REQUEST)
    async def retrieve(request: Request) -> Response:
        """Return the best documents of each query, in the protocol of Search-R1's retrieval server."""
        asked = read_request(await _read_body(request, limits), limits)
        # No query, no search: an agent whose batch has nothing to look up asks so.
        results = await _unless_gone(request, queue.search(asked.queries, asked.k)) if asked.queries else []
        return Response(write_response(results, asked.return_scores), media_type="application/json")

    @app.get("/health", summary="What is served here")
    async def health() -> Health:
        """Tell that the server is up, and what it searches."""
        return Health(
            status="ok",
            dataset=served.dataset,
            documents=len(served.corpus),
            retriever=served.retriever,
            version=__version__,
            waiting=queue.waiting,
        )

    @app.get("/", include_in_schema=False)
    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(_page(app.openapi(), await health()), headers={"Content-Security-Policy": _CSP})

    return app


class Guard:
    """Middleware that answers 401 without the token or, where there is none, 403 to other names of this machine."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it before its body is read."""
        error = self._check(Headers(scope=scope)) if scope["type"] == "http" else None
        await (self._app if error is None else _refusal(error))(scope, receive, send)

    def _check(self, headers: Headers) -> HTTPError | None:
        if self._token is None:
            # A web page may have its own name point at this machine and so read, through its visitor's
            # browser, what is served here; the name it was called by gives it away.
            if is_loopback(_host(headers.get("host", ""))):
                return None
            return HTTPError(403, "without a token this server answers only to localhost, 127.0.0.1 and [::1]")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # Headers are decoded as Latin-1; back to bytes, they are what was sent. Compared in constant time.
        is_right = hmac.compare_digest(token.strip().encode("latin-1"), self._token)
        if scheme.lower() == "bearer" and is_right:
            return None
        detail = "this server needs its token: send the header Authorization: Bearer TOKEN"
        return HTTPError(401, detail, {"WWW-Authenticate": "Bearer"})


def is_loopback(host: str) -> bool:
    """Return whether a host name or address can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(header: str) -> str:
    """Return a Host header without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _refusal(error: HTTPError) -> Response:
    return JSONResponse({"detail": error.detail}, error.status, error.headers)


async def _read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request. Raises HTTPError if it is too large, as soon as that is known, or too slow."""
    too_large = HTTPError(413, f"the request is larger than this server takes, {limits.body:,} bytes")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limits.body):
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body:  # chunked, so that no length was declared
                    raise too_large
    except TimeoutError:
        raise HTTPError(408, f"the request did not arrive within {limits.seconds} seconds") from None
    except ClientDisconnect:
        raise HTTPError(400, "the request ended before it was complete") from None  # nobody is left to read it
    except asyncio.CancelledError:  # the server stops, and still owes an answer
        raise unavailable("the server is stopping") from None
    return bytes(body)


async def _unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Return the result of work, which is cancelled if the client disconnects before it is done."""
    task = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPError(400, "the client has gone")
    finally:
        task.cancel()
        leaving.cancel()


async def _disconnected(request: Request) -> None:
    """Return when the client has disconnected; only for a request whose body was read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


_EXAMPLE = {"queries": ["Which nerve is compressed in the carpal tunnel?"], "topk": 3, "return_scores": True}

# The body is read here, within the limits, and not by FastAPI, which therefore cannot know its schema.
_REQUEST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": RetrieveRequest.model_json_schema(), "example": _EXAMPLE}},
    }
}

_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": RetrieveResponse, "description": "For each query its documents, best first."},
    400: {"model": Detail, "description": "Not UTF-8, or not JSON."},
    408: {"model": Detail, "description": "The request took too long to arrive."},
    413: {"model": Detail, "description": "The request is too large."},
    422: {"model": Detail, "description": "A field is wrong, or asks for too much."},
    500: {"model": Detail, "description": "The search failed."},
    503: {"model": Detail, "description": "Too many are waiting, or the server is stopping; Retry-After says when."},
}

_CSP = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem }
body { color: #1c2430; background: #fff }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
code, pre { font: 14px/1.5 ui-monospace, monospace; background: #f2f4f7; border-radius: 4px } code { padding: 0 .2em }
pre { padding: .8rem; overflow-x: auto }
table { border-collapse: collapse } th { font-weight: 600 }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top }
@media (prefers-color-scheme: dark) {
 body { color: #e4e8ee; background: #15191f } code, pre { background: #232a33 } a { color: #8ab8ff }
}
"""


def _page(openapi: dict[str, Any], health: Health) -> str:
    """Return the page that shows the OpenAPI description to a person; it loads nothing from elsewhere."""
    facts = f"{health.documents:,} documents of {health.dataset}, searched by {health.retriever}"
    sections = [
        section
        for path, operations in openapi["paths"].items()
        for method, operation in operations.items()
        for section in _sections(method, path, operation)
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>r2med serve: {escape(health.dataset)}</title><style>{_STYLE}</style></head><body>
<h1>r2med serve</h1>
<p>{escape(facts)}. Version {escape(health.version)}.</p>
{"".join(sections)}
<p>For programs: <a href="openapi.json">openapi.json</a>.</p>
</body></html>
"""


def _sections(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{escape(method.upper())} {escape(path)}</code> {escape(operation.get('summary', ''))}</h2>"
    yield f"<p>{escape(operation.get('description', ''))}</p>"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        example = json.dumps(body["example"], ensure_ascii=False)
        command = f"curl -H 'Content-Type: application/json' -d '{example}' …{path}"
        yield f"<pre>{escape(command)}</pre>"
        fields = [(name, field.get("description", "")) for name, field in body["schema"]["properties"].items()]
        yield _table(("field", "meaning"), fields)
    answers = [(status, answer["description"]) for status, answer in operation["responses"].items()]
    yield _table(("answer", "when"), answers)


def _table(heads: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td><code>{escape(name)}</code></td><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table><tr><th>{heads[0]}</th><th>{heads[1]}</th></tr>{cells}</table>"
