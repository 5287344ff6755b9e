"""The application of the review page: people accept or reject candidates and settle disagreements."""

from __future__ import annotations

from typing import Annotated, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from r2med.construction.review.review_book import ConflictError
from r2med.construction.review.review_desk import ReviewDesk, View
from r2med.construction.review.reviews import Verdict
from r2med.server.http_app import PAGE_HEADERS, guarded_app, page_file, read_body
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
    app = guarded_app("r2med review")

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


_ASSETS = {
    "r2med.server": ("review.html", "review.css", "review.js", "review_sending.js"),
    "r2med.web": ("base.css", "shell.js", "formats.js", "board.js", "marks.js", "icon.svg"),
}
"""Room -> files of the page, which uses the shell of the board."""
