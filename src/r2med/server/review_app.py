"""The application of the review page: people accept or reject candidates and settle disagreements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from r2med.construction.review.review_book import ConflictError
from r2med.construction.review.review_desk import ReviewDesk, View
from r2med.construction.review.reviews import Verdict
from r2med.core.version import __version__
from r2med.server.http_app import PAGE_HEADERS, Guard, page_file, read_body, refusal
from r2med.server.limits import Limits
from r2med.server.refusals import HTTPError
from r2med.site.site import data_script

_LIMITS = Limits(body=1 << 16)
_OWN_PAGES_ONLY = {"Cross-Origin-Resource-Policy": "same-origin"}
"""With this header, browsers do not give the script with the folder's name to pages of other sites."""

_Body = TypeVar("_Body", bound=BaseModel)
Name = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^\S(.*\S)?$")]


class ViewRequest(BaseModel):
    """The request for a candidate to show."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    at: str = ""
    step: int = Field(0, ge=-1, le=1)
    disputes: bool = False


class EmptyRequest(BaseModel):
    """A request without fields."""

    model_config = ConfigDict(extra="forbid")


class VerdictRequest(BaseModel):
    """A verdict that a page sends."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    item: str
    verdict: Verdict
    comment: str = Field("", max_length=5000)
    seen: str
    """The revision of the verdict that this one replaces. Empty for a first verdict."""
    disputes: bool = False


def create_review_app(desk: ReviewDesk, title: str) -> FastAPI:
    """Return the application that serves a review desk to people at this machine."""
    app = FastAPI(title="r2med review", version=__version__, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, token=None)

    @app.exception_handler(HTTPError)
    async def refuse(request: Request, error: HTTPError) -> Response:
        return refusal(error)

    @app.get("/")
    @app.get("/assets/{name}")
    async def page(name: str = "review.html") -> Response:
        return page_file(name, _ASSETS)

    @app.get("/data/site.js")
    async def site() -> Response:
        foot = f"{title} · Every verdict is on the disk before the next passage is shown."
        script = data_script("site", {"foot": foot})
        return Response(script, media_type="text/javascript", headers={**PAGE_HEADERS, **_OWN_PAGES_ONLY})

    @app.post("/names")
    async def names(request: Request) -> Response:
        """Return the names of reviewers as JSON. Pages of other sites cannot read JSON, but could load a script."""
        await _read(request, EmptyRequest)
        return _json({"names": await run_in_threadpool(desk.names)})

    @app.post("/view")
    async def view(request: Request) -> Response:
        asked = await _read(request, ViewRequest)
        show = desk.dispute if asked.disputes else desk.view
        return _json(await run_in_threadpool(show, asked.name, asked.at, asked.step))

    @app.post("/decide")
    async def decide(request: Request) -> Response:
        given = await _read(request, VerdictRequest)
        said = given.name, given.item, given.verdict, given.comment, given.seen, given.disputes
        try:
            kept = await run_in_threadpool(desk.decide, *said)
        except KeyError:
            raise HTTPError(404, "this passage no longer exists: reload the page") from None
        except ConflictError as error:
            current = error.current
            stored = {"verdict": current.review.verdict, "comment": current.review.comment} if current else {}
            return _json({**stored, "revision": current.revision if current else ""}, 409)
        return _json({"revision": kept.revision})

    return app


async def _read(request: Request, kind: type[_Body]) -> _Body:
    """Return the body of a request. Raises HTTPError if it is not JSON or has wrong fields."""
    try:
        return kind.model_validate_json(await read_body(request, _LIMITS))
    except ValidationError as error:
        first = error.errors()[0]
        raise HTTPError(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _json(value: View, status: int = 200) -> Response:
    return JSONResponse(value, status, {"Cache-Control": "no-store"})


_SCRIPT, _STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"
_ASSETS: Mapping[str, tuple[str, str]] = {
    "review.html": ("r2med.server", "text/html; charset=utf-8"),
    "review.css": ("r2med.server", _STYLE),
    "review.js": ("r2med.server", _SCRIPT),
    "review_sending.js": ("r2med.server", _SCRIPT),
    "base.css": ("r2med.web", _STYLE),
    "shell.js": ("r2med.web", _SCRIPT),
    "formats.js": ("r2med.web", _SCRIPT),
    "board.js": ("r2med.web", _SCRIPT),
    "marks.js": ("r2med.web", _SCRIPT),
    "icon.svg": ("r2med.web", "image/svg+xml"),
}
"""File of the page -> its room and its media type. The page uses the shell of the board."""
