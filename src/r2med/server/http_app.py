"""The HTTP application: check the client, read a request, queue its search, and write the response."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Mapping, Sequence
from importlib import resources
from pathlib import PurePath
from typing import Any, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from r2med.foundation.core.version import __version__
from r2med.server import limits
from r2med.server.answer_pool import AnswerPool
from r2med.server.refusals import HTTPError, unavailable
from r2med.server.retrieve_protocol import RetrieveRequest, RetrieveResponse, read_request, write_response
from r2med.server.search_protocol import (
    EXAMPLE,
    SearchRequest,
    SearchResponse,
    SystemFacts,
    Systems,
    answered,
    read_question,
)
from r2med.server.search_queue import SearchQueue
from r2med.server.served_corpus import ServedData

T = TypeVar("T")

SUGGESTED = 200
"""Maximum number of example questions that the page offers."""


class Health(BaseModel):
    """The state of the server, and the corpus it serves."""

    status: str
    dataset: str
    documents: int
    retriever: str
    version: str
    waiting: int = Field(description="Number of requests that wait for a search.")


class Detail(BaseModel):
    """One line with the reason why a request was not served."""

    detail: str


def guarded_app(title: str, token: str | None = None, openapi_url: str | None = None) -> FastAPI:
    """Return an application without routes. It refuses strangers, and answers an HTTPError with its line."""
    app = FastAPI(title=title, version=__version__, docs_url=None, redoc_url=None, openapi_url=openapi_url)
    app.add_middleware(Guard, token=token)

    @app.exception_handler(HTTPError)
    async def refuse(request: Request, error: HTTPError) -> Response:
        return refusal(error)

    return app


def create_app(data: ServedData, token: str | None = None) -> FastAPI:
    """Return the application that serves a corpus. Without a token, only programs of this machine can use it.

    The systems answer questions at POST /search and on the page. The data, the queue and the threads are in
    `app.state`, so that the server can close them when it stops.
    """
    queue = SearchQueue(lambda queries, k: data.corpus.search(queries, k), limits.MAX_WAITING, limits.BATCH_QUERIES)
    app = guarded_app("r2med serve", token, "/openapi.json")
    app.state.data = data
    app.state.queue = queue
    app.state.answers = answers = AnswerPool(limits.MAX_ANSWERS)

    @app.post("/retrieve", summary="Search", response_model=None, responses=_RESPONSES, openapi_extra=_REQUEST)
    async def retrieve(request: Request) -> Response:
        """Return the best documents of each query, in the protocol of Search-R1's retrieval server."""
        asked = read_request(await read_body(request))
        await data.check()
        # Agents may send a batch without queries.
        results = await unless_gone(request, queue.search(asked.queries, asked.k)) if asked.queries else []
        return Response(write_response(results, asked.return_scores), media_type="application/json")

    @app.get("/health", summary="What is served here")
    async def health() -> Health:
        """Report that the server runs, and what it searches."""
        served = data.corpus
        return Health(
            status="data changed" if served.data.is_changed else "ok",
            dataset=served.dataset,
            documents=len(served.corpus),
            retriever=served.retriever,
            version=__version__,
            waiting=queue.waiting,
        )

    @app.post("/search", summary="Ask a system", response_model=None, responses=_ANSWERS, openapi_extra=_QUESTION)
    async def search(request: Request) -> Response:
        """Return the passages that a system finds for a question, the texts of its LLM, and the cost of each stage."""
        body = await read_body(request)
        await data.check()
        asked, system = read_question(body, data.systems)
        response = await unless_gone(request, answered(answers, system, asked.question, asked.k))
        budget = system.system.runtime.budget
        response = response.model_copy(update={"spent": budget.spent, "budget": budget.limit})
        return Response(response.model_dump_json(), media_type="application/json")

    @app.get("/systems", summary="What can be asked")
    async def list_systems() -> Systems:
        """List the systems that answer questions here, and some questions of the dataset."""
        await data.check()
        served, systems = data.corpus, data.systems
        queries = systems[0].dataset.queries[:SUGGESTED] if systems else ()
        return Systems(
            dataset=served.dataset,
            documents=len(served.corpus),
            version=__version__,
            seconds=limits.ANSWER_SECONDS,
            systems=[SystemFacts(name=system.name, asks=bool(system.system.asking)) for system in systems],
            questions=[query.text for query in queries],
        )

    @app.get("/", include_in_schema=False)
    @app.get("/assets/{name}", include_in_schema=False)
    async def page(name: str = "search.html") -> Response:
        return page_file(name, _ASSETS)

    return app


def _check_json(headers: Headers) -> HTTPError | None:
    """Return an error if a request is not JSON.

    A form on a page of another site cannot send JSON. So it cannot spend money or act in the name of its visitor.
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
        return None
    return HTTPError(415, "send JSON, with the header Content-Type: application/json")


def page_file(name: str, assets: Mapping[str, Sequence[str]]) -> Response:
    """Return a file of a page. `assets` are room -> files."""
    room = next((room for room, files in assets.items() if name in files), "")
    if not room:
        raise HTTPError(404, "there is no such page")
    content = (resources.files(room) / "assets" / name).read_bytes()
    return Response(content, media_type=_MEDIA_TYPES[PurePath(name).suffix], headers=PAGE_HEADERS)


class Guard:
    """Middleware that refuses a request before its body is read, whatever its method and path.

    The status is 401 if the token is missing or wrong. It is 403 for a request from a page of another site and, if the
    server has no token, for one with another host name. It is 415 for a POST that is not JSON.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or refuse it before its body is read."""
        error = None
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            error = self._check(headers) or (_check_json(headers) if scope["method"] == "POST" else None)
        await (self._app if error is None else refusal(error))(scope, receive, send)

    def _check(self, headers: Headers) -> HTTPError | None:
        if self._token is None:
            # A web site may let its own name point at this machine, and read the answers through its visitor's
            # browser. The host name of the request shows this.
            if not is_loopback(_host(headers.get("host", ""))):
                return HTTPError(403, "without a token this server answers only to localhost, 127.0.0.1 and [::1]")
        elif not self._has_token(headers):
            detail = "this server needs its token: send the header Authorization: Bearer TOKEN"
            return HTTPError(401, detail, {"WWW-Authenticate": "Bearer"})
        # A proxy adds the token to what a browser sends, also to what a page of another site makes it send.
        if _is_from_another_site(headers):
            detail = "this server answers only to its own pages and to programs; a proxy must pass on the header Host"
            return HTTPError(403, detail)
        return None

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        # Headers are decoded as Latin-1. Encoding them again gives the sent bytes. The comparison takes constant time.
        is_right = self._token is not None and hmac.compare_digest(token.strip().encode("latin-1"), self._token)
        return scheme.lower() == "bearer" and is_right


def is_loopback(host: str) -> bool:
    """Return True if a host name or address can only mean this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(header: str) -> str:
    """Return a Host header without its port; empty if it is not a host and port, as in [::1].example.com."""
    parts = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+))(?::\d*)?", header)
    return (parts[1] or parts[2]) if parts else ""


def _is_from_another_site(headers: Headers) -> bool:
    """Return True if a page of another origin sent the request. A click on a link does not count."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers.get("host"):
        return True
    # Browsers send no Origin for a <script> or an image of another site, but they send this header.
    is_cross = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
    return is_cross and headers.get("sec-fetch-mode") != "navigate"


def refusal(error: HTTPError) -> Response:
    """Return the response to a request that is not served."""
    return JSONResponse({"detail": error.detail}, error.status, error.headers)


async def read_body(request: Request, max_bytes: int = limits.MAX_BODY) -> bytes:
    """Return the body of a request. Raises HTTPError if the body is too large or too slow."""
    too_large = HTTPError(413, f"the request is too large; this server accepts {max_bytes:,} bytes")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > max_bytes):
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:  # a chunked body declares no length
                    raise too_large
    except TimeoutError:
        raise HTTPError(408, f"the request did not arrive within {limits.BODY_SECONDS} seconds") from None
    except ClientDisconnect:
        raise HTTPError(400, "the request ended before it was complete") from None  # the client has gone
    except asyncio.CancelledError:  # the server stops, but must still answer
        raise unavailable("the server is stopping") from None
    return bytes(body)


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Return the result of work. The work is cancelled if the client disconnects."""
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
    """Wait until the client disconnects. The body of the request must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


_EXAMPLE = {"queries": ["Which nerve is compressed in the carpal tunnel?"], "topk": 3, "return_scores": True}

# We read the body within the limits. FastAPI does not read it, so its schema must be given here.
_REQUEST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": RetrieveRequest.model_json_schema(), "example": _EXAMPLE}},
    }
}

_QUESTION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": SearchRequest.model_json_schema(), "example": EXAMPLE}},
    }
}

_ASSETS = {
    "r2med.server": ("search.html", "search.css", "search.js"),
    "r2med.foundation.web": ("shell.js", "formats.js", "marks.js", "parts.js", "pages.js", "base.css", "icon.svg"),
}
"""Room -> files of the page."""

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": RetrieveResponse, "description": "The documents of each query, best first."},
    400: {"model": Detail, "description": "Not UTF-8, or not JSON."},
    408: {"model": Detail, "description": "The request took too long to arrive."},
    413: {"model": Detail, "description": "The request is too large."},
    415: {"model": Detail, "description": "The request is not sent as JSON."},
    422: {"model": Detail, "description": "A field is wrong or exceeds a limit."},
    500: {"model": Detail, "description": "The search failed."},
    503: {
        "model": Detail,
        "description": "Too many requests are waiting, the server is stopping, or its data were removed.",
    },
}

_ANSWERS: dict[int | str, dict[str, Any]] = {
    **_RESPONSES,
    200: {
        "model": SearchResponse,
        "description": "The answer, or one line with the reason why there is no answer (status, problem).",
    },
    503: {
        "model": Detail,
        "description": "Too many questions, the server is stopping, or its data were removed.",
    },
}
_ANSWERS.pop(500)
