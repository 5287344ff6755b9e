"""The protocol of Search-R1's retrieval server: the request and the response.

A client posts `{"queries": [...], "topk": 3, "return_scores": true}` and reads `result`. This is for every query a list
of `{"document": {"id", "contents"}, "score"}`, or of documents alone if scores are not requested. The first line of
`contents` is the title, and the other lines are the text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from r2med.foundation.core.errors import explained
from r2med.foundation.text.unicode import is_unicode
from r2med.server import limits
from r2med.server.refusals import HTTPError
from r2med.systems.agents.agent_state import Hit

Request = TypeVar("Request", bound=BaseModel)

TOPK = 3
"""Default number of documents for a query, as in Search-R1."""


class RetrieveRequest(BaseModel):
    """The queries to search for. Unknown keys are ignored, as in Search-R1's server."""

    model_config = ConfigDict(strict=True, frozen=True)

    queries: list[str] = Field(description="The texts to search for. No character has a special meaning.")
    topk: int | None = Field(TOPK, description="Number of documents for each query.")
    return_scores: bool = Field(False, description="True to return the score of each document.")

    @property
    def k(self) -> int:
        """Number of documents for each query. null means the default, as in Search-R1's server."""
        return TOPK if self.topk is None else self.topk


class RetrievedDocument(BaseModel):
    """One document."""

    id: str
    contents: str = Field(description="Title, line break, text. Without a title, it starts with the line break.")


class ScoredDocument(BaseModel):
    """One document with its score."""

    document: RetrievedDocument
    score: float


class RetrieveResponse(BaseModel):
    """The documents of each query, best first. There may be fewer than topk."""

    result: list[list[ScoredDocument] | list[RetrievedDocument]]


def read_request(body: bytes) -> RetrieveRequest:
    """Parse the body of a request. Raises HTTPError if it cannot be read or exceeds a limit."""
    request = validated(RetrieveRequest, body, {"queries": ["…"], "topk": TOPK, "return_scores": True})
    _check(request)
    return request


def validated(model: type[Request], body: bytes, example: dict[str, Any]) -> Request:
    """Return a body as a request. Raises HTTPError if it is not JSON, or if a field is wrong."""
    return checked(model, _parse_json(body), example)


def checked(model: type[Request], value: Any, example: dict[str, Any]) -> Request:
    """Return a value of JSON as a request. Raises HTTPError if a field is wrong."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        if not error.errors()[0]["loc"]:
            shown = json.dumps(example, ensure_ascii=False)
            raise HTTPError(422, f"the request must be an object such as {shown}") from None
        raise HTTPError(422, explained(error)) from None


def write_response(results: Sequence[Sequence[Hit]], scores: bool) -> bytes:
    """Return the body of a response, with or without the scores."""
    lists = [[_entry(hit, scores) for hit in hits] for hits in results]
    return json.dumps({"result": lists}, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _entry(hit: Hit, scores: bool) -> dict[str, Any]:
    document = {"id": hit.id, "contents": hit.contents}
    return {"document": document, "score": hit.score} if scores else document


def _parse_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise HTTPError(400, f"the request is not UTF-8: byte {error.start} does not belong there") from None
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise HTTPError(400, f"the request is not JSON: {error.msg} at {position}") from None
    except RecursionError:
        raise HTTPError(400, "the request is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:  # NaN, or an integer of thousands of digits
        raise HTTPError(400, f"the request is not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"there is no {name} in it")


def _check(request: RetrieveRequest) -> None:
    count = len(request.queries)
    k = request.k
    if count > limits.MAX_QUERIES:
        raise HTTPError(422, f"queries: {count:,} queries are too many; this server accepts {limits.MAX_QUERIES:,}")
    if not 1 <= k <= limits.MAX_TOPK:
        raise HTTPError(422, f"topk: it must be from 1 to {limits.MAX_TOPK:,}")
    if count * k > limits.MAX_DOCUMENTS:
        raise HTTPError(422, f"{count:,} queries × topk {k:,} are more than {limits.MAX_DOCUMENTS:,} documents")
    for index, query in enumerate(request.queries):
        check_text(f"queries[{index}]", query)


def check_text(field: str, text: str) -> None:
    """Raise HTTPError if a text cannot be searched or is too long."""
    if not text.strip():
        raise HTTPError(422, f"{field}: it is empty")
    if len(text) > limits.MAX_CHARACTERS:
        raise HTTPError(422, f"{field}: {len(text):,} characters are more than {limits.MAX_CHARACTERS:,}")
    if not is_unicode(text):
        raise HTTPError(422, f"{field}: it has half of a surrogate pair")
