"""The application of the review page: people review candidates and texts of questions, and settle disagreements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from r2med.assessment.review.kinds import PASSAGE
from r2med.assessment.review.review_book import ConflictError
from r2med.assessment.review.review_desk import ReviewDesk, View, opinion_view
from r2med.assessment.review.reviews import MAX_CORRECTION
from r2med.assessment.rubrics.rubric import Rubric, Verdict
from r2med.foundation.core.errors import explained
from r2med.publication.site.site import data_script
from r2med.server.http_app import PAGE_HEADERS, guarded_app, page_file, read_body
from r2med.server.refusals import HTTPError

_MAX_BODY = 1 << 18
_OWN_PAGES_ONLY = {"Cross-Origin-Resource-Policy": "same-origin"}
"""With this header, browsers do not give the script with the folder's name to pages of other sites."""

_Body = TypeVar("_Body", bound=BaseModel)
Name = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^\S(.*\S)?$")]


class ViewRequest(BaseModel):
    """The request for an item to show."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    kind: str = PASSAGE
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
    kind: str = PASSAGE
    item: str
    verdict: Verdict | None = None
    """The verdict, for a kind with one point that is answered by yes or no."""
    answers: dict[str, str] = {}
    """The answers, for other kinds."""
    comment: str = Field("", max_length=5000)
    correction: str = Field("", max_length=MAX_CORRECTION)
    """The text as the person corrects it."""
    seen: str
    """The revision of the verdict that this one replaces. Empty for a first verdict."""
    disputes: bool = False


def create_review_app(
    desks: Mapping[str, ReviewDesk],
    title: str,
    guideline: str = "",
) -> FastAPI:
    """Return the application that serves review desks, one for each kind of items, to people at this machine.

    `guideline` is a text for reviewers.
    """
    app = guarded_app("r2med review")

    def _desk(kind: str) -> ReviewDesk:
        if kind not in desks:
            raise HTTPError(404, "this kind of items is not reviewed here: reload the page")
        return desks[kind]

    @app.get("/")
    @app.get("/assets/{name}")
    async def page(name: str = "review.html") -> Response:
        return page_file(name, _ASSETS)

    @app.get("/data/site.js")
    async def site() -> Response:
        foot = f"{title} · Every verdict is on the disk before the next item is shown."
        kinds = [_described(desk.rubric) for desk in desks.values()]
        content = {"foot": foot, "kinds": kinds, "guideline": guideline}
        script = data_script("site", content)
        return Response(script, media_type="text/javascript", headers={**PAGE_HEADERS, **_OWN_PAGES_ONLY})

    @app.post("/names")
    async def names(request: Request) -> Response:
        """Return the names of reviewers as JSON. Pages of other sites cannot read JSON, but could load a script."""
        await _read(request, EmptyRequest)
        names = await run_in_threadpool(lambda: {name for desk in desks.values() for name in desk.names()})
        return _json({"names": sorted(names)})

    @app.post("/view")
    async def view(request: Request) -> Response:
        asked = await _read(request, ViewRequest)
        desk = _desk(asked.kind)
        show = desk.dispute if asked.disputes else desk.view
        return _json(await run_in_threadpool(show, asked.name, asked.at, asked.step))

    @app.post("/decide")
    async def decide(request: Request) -> Response:
        given = await _read(request, VerdictRequest)
        said = given.verdict or given.answers
        rest = given.comment, given.seen, given.disputes, given.correction
        try:
            kept = await run_in_threadpool(_desk(given.kind).decide, given.name, given.item, said, *rest)
        except KeyError:
            raise HTTPError(404, "this item no longer exists: reload the page") from None
        except ValidationError as error:
            raise HTTPError(422, explained(error)) from None
        except ConflictError as error:
            current = error.current
            stored = opinion_view(current.review) if current else {}
            return _json({**stored, "revision": current.revision if current else ""}, 409)
        return _json({"revision": kept.revision})

    return app


def _described(rubric: Rubric) -> View:
    """Return what the page needs to know about a rubric."""
    points = [{"name": point.name, "text": point.text or rubric.task} for point in rubric.points]
    scale = [
        {"word": word.word, "label": word.shown, "key": word.key or str(place), "verdict": word.decides}
        for place, word in enumerate(rubric.words)
    ]
    return {
        **{"name": rubric.name, "noun": rubric.noun, "task": rubric.task},
        **{"points": points, "scale": scale[::-1]},  # the highest answer is the first button
    }


async def _read(request: Request, kind: type[_Body]) -> _Body:
    """Return the body of a request. Raises HTTPError if it is not JSON or has wrong fields."""
    try:
        return kind.model_validate_json(await read_body(request, _MAX_BODY))
    except ValidationError as error:
        raise HTTPError(422, explained(error)) from None


def _json(value: View, status: int = 200) -> Response:
    return JSONResponse(value, status, {"Cache-Control": "no-store"})


_SCRIPTS = ("", "_access", "_enter", "_guideline", "_replies", "_sending", "_texts")
_ASSETS = {
    "r2med.server": ("review.html", "review.css", *(f"review{part}.js" for part in _SCRIPTS)),
    "r2med.foundation.web": ("base.css", "shell.js", "formats.js", "parts.js", "pages.js", "marks.js", "icon.svg"),
}
"""Room -> files of the page, which uses the shell of the board."""
