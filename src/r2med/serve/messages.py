"""The protocol of Search-R1's retrieval server: what is asked and what is answered.

Its client posts `{"queries": [...], "topk": 3, "return_scores": true}` and reads `result`: for every query a list of
`{"document": {"id", "contents"}, "score"}`, or without scores of the documents alone. It takes the first line of
`contents` for the title and the others for the text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from r2med.retrieve.contents import contents
from r2med.serve.limits import TOPK, Limits
from r2med.serve.refusals import Refused


class Question(BaseModel):
    """What is asked; keys that are not known are passed over, as Search-R1's server does."""

    model_config = ConfigDict(strict=True, frozen=True)

    queries: list[str] = Field(description="What to search for; nothing in it is special.")
    topk: int | None = Field(TOPK, description="Documents for each query.")
    return_scores: bool = Field(False, description="Whether each document comes with its score.")


class Document(BaseModel):
    """One document."""

    id: str
    contents: str = Field(description="Title, line break, text; a document without a title starts with the break.")


class Scored(BaseModel):
    """One document with its score."""

    document: Document
    score: float


class Answer(BaseModel):
    """For each query its documents, best first; fewer than topk where fewer were found."""

    result: list[list[Scored] | list[Document]]


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found."""

    id: str
    text: str
    score: float


def read_question(body: bytes, limits: Limits) -> Question:
    """Return what a request asks; one that cannot be read, or that asks for too much, is refused with one line."""
    try:
        question = Question.model_validate(_parse(body))
    except ValidationError as error:
        raise Refused(422, _line(error)) from None
    _check(question, limits)
    return question


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise Refused(400, f"the request is not UTF-8: byte {error.start} does not belong there") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refused(400, f"the request is not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise Refused(400, "the request is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # NaN, or an integer of thousands of digits
        raise Refused(400, f"the request is not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"there is no {name} in it")


def _line(error: ValidationError) -> str:
    """Return the first fault with its place, as one would write it: queries[2]."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if not first["loc"]:
        return 'the request must be an object such as {"queries": ["…"], "topk": 3, "return_scores": true}'
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    what = "it is missing" if first["type"] == "missing" else first["msg"][:1].lower() + first["msg"][1:]
    return f"{place}: {what}"


def _check(question: Question, limits: Limits) -> None:
    count, topk = len(question.queries), wanted(question)
    if count > limits.queries:
        raise Refused(422, f"queries: {count:,} are more than this server takes at once, {limits.queries:,}")
    if not 1 <= topk <= limits.topk:
        raise Refused(422, f"topk: it must be from 1 to {limits.topk:,}")
    if count * topk > limits.documents:
        raise Refused(422, f"{count:,} queries × topk {topk:,} are more documents than {limits.documents:,}")
    for place, query in enumerate(question.queries):
        if not query.strip():
            raise Refused(422, f"queries[{place}]: it is empty")
        if len(query) > limits.characters:
            raise Refused(422, f"queries[{place}]: {len(query):,} characters are more than {limits.characters:,}")
        if not _is_text(query):
            raise Refused(422, f"queries[{place}]: it has half of a surrogate pair")


def _is_text(query: str) -> bool:
    try:
        query.encode()
    except UnicodeEncodeError:
        return False
    return True


def wanted(question: Question) -> int:
    """Return how many documents each query wants; null is the default, as in Search-R1's server."""
    return TOPK if question.topk is None else question.topk


def write_answer(found: Sequence[Sequence[Hit]], scores: bool) -> bytes:
    """Return the answer to a question as it goes over the wire."""
    lists = [[_entry(hit, scores) for hit in hits] for hits in found]
    return json.dumps({"result": lists}, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _entry(hit: Hit, scores: bool) -> dict[str, Any]:
    document = {"id": hit.id, "contents": contents(hit.text)}
    return {"document": document, "score": hit.score} if scores else document
