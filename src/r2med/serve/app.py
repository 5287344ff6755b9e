"""The application: what is asked over HTTP goes to the line, what was found comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from r2med import __version__
from r2med.serve.body import gone, read_body
from r2med.serve.guard import Guard
from r2med.serve.limits import Limits
from r2med.serve.line import Line
from r2med.serve.messages import Answer, Question, read_question, wanted, write_answer
from r2med.serve.page import CSP, page
from r2med.serve.refusals import Refused
from r2med.serve.shelf import Shelf

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


def create_app(shelf: Shelf, limits: Limits | None = None, token: str | None = None) -> FastAPI:
    """Return the application that serves a shelf; without a token, to programs of this machine only.

    Its line is at `app.state.line`, so that whoever stops the server can close it.
    """
    limits = limits or Limits()
    line = Line(shelf.find, limits.waiting, limits.batch)
    app = FastAPI(title="r2med serve", version=__version__, docs_url=None, redoc_url=None)
    app.state.line = line
    app.add_middleware(Guard, token=token)

    @app.exception_handler(Refused)
    async def refuse(request: Request, refusal: Refused) -> Response:
        return JSONResponse({"detail": refusal.line}, refusal.status, refusal.headers)

    @app.post("/retrieve", summary="Search", response_model=None, responses=_RESPONSES, openapi_extra=_REQUEST)
    async def retrieve(request: Request) -> Response:
        """Return the best documents of each query, in the protocol of Search-R1's retrieval server."""
        question = read_question(await read_body(request, limits), limits)
        search = line.search(question.queries, wanted(question)) if question.queries else _nothing()
        found = await _unless_gone(request, search)
        return Response(write_answer(found, question.return_scores), media_type="application/json")

    @app.get("/health", summary="What is served here")
    async def health() -> Health:
        """Tell that the server is up, and what it searches."""
        return Health(
            status="ok",
            dataset=shelf.dataset,
            documents=len(shelf.corpus),
            retriever=shelf.retriever,
            version=__version__,
            waiting=line.waiting,
        )

    @app.get("/", include_in_schema=False)
    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(page(app.openapi(), await health()), headers={"Content-Security-Policy": CSP})

    return app


async def _nothing() -> list[Any]:
    """Find what no query finds: an agent whose batch has no search in it asks that."""
    return []


async def _unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Return what comes of work, which is dropped if the client goes away before it is done."""
    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(gone(request))
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Refused(400, "the client has gone")
    finally:
        task.cancel()
        leaving.cancel()


_EXAMPLE = {"queries": ["Which nerve is compressed in the carpal tunnel?"], "topk": 3, "return_scores": True}

# Read by hand, within the limits, so FastAPI has to be told what is read.
_REQUEST: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": Question.model_json_schema(), "example": _EXAMPLE}},
    }
}

_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": Answer, "description": "For each query its documents, best first."},
    400: {"model": Detail, "description": "Not UTF-8, or not JSON."},
    408: {"model": Detail, "description": "The request took too long to arrive."},
    413: {"model": Detail, "description": "The request is too large."},
    422: {"model": Detail, "description": "It asks for what cannot be, or for too much."},
    500: {"model": Detail, "description": "The search failed."},
    503: {"model": Detail, "description": "Too many are waiting, or the server is stopping; Retry-After says when."},
}
