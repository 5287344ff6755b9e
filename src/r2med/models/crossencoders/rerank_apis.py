"""Rerank APIs: a card with the names of their fields, their limits and addresses, and the parsing of their answers.

All APIs have the same protocol. A query and a list of documents are sent, and a numbered score for each document comes
back. Each API names the fields differently.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.names import Catalogue
from r2med.foundation.net.endpoint import Endpoint
from r2med.foundation.net.http import RequestFailed, status_failure
from r2med.models.encoders.api_account import ApiAccount

DOCUMENTS_PER_SEARCH = 100
"""Documents that Cohere ranks for the price of one search."""
BYTES_PER_DOCUMENT = 500
"""A lower bound of the bytes that Cohere bills as one document: it counts 500 tokens, with those of the query."""


class RerankApi(ApiAccount):
    """The settings that differ between rerank APIs."""

    path: str = "/rerank"
    """Path after the base URL."""
    sends_model: bool = True
    """True if a request names the model. A server of one model needs no name."""
    query: str = "query"
    """Name of the field with the query."""
    documents: str = "documents"
    """Name of the field with the documents."""
    limit: str = ""
    """Name of the field with the number of results. Empty: the answer always has all."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request."""
    results: str = "results"
    """Name of the field with the list of results. Empty: the answer is the list."""
    score: str = "relevance_score"
    """Name of the field with a score."""
    documents_per_request: int = Field(1000, ge=1)
    """Maximum number of documents that are sent together."""
    bytes_per_request: int = Field(4_000_000, ge=1)
    """Maximum bytes of the documents of a request, each with its query. A token has at least one byte."""

    def body(self, model: str, query: str, documents: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request."""
        named = {"model": model} if self.sends_model else {}
        limit = {self.limit: len(documents)} if self.limit else {}
        return {**named, self.query: query, self.documents: list(documents), **limit, **self.settings}


RERANK_APIS: Catalogue[RerankApi] = Catalogue("rerank-apis", RerankApi, "rerank API")
"""Every rerank API that has a card, by name."""


def own_servers() -> tuple[str, ...]:
    """Return the APIs of servers that a user runs: API:MODEL needs no card."""
    return tuple(name for name, api in RERANK_APIS.items() if not api.urls)


def refusal(api: RerankApi, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
    """Return the failure that an HTTP status means, with a hint about what to check."""
    failure = status_failure(endpoint, status, headers, body)
    hints = {
        404: f"check the model's name, and the base URL, to which {api.path} is added",
        405: f"check the base URL, to which {api.path} is added",
        413: f"up to {api.documents_per_request} documents are sent together; let the server take as many"
        if not api.urls
        else "a query or a document is too long for the model",
        422: "a query or a document may be too long for the model, or the server has another API",
    }
    if status not in hints:
        return failure
    return RequestFailed(f"{failure}; {hints[status]}", again=False, kind=failure.kind, for_all=failure.for_all)


def read_scores(body: Any, api: RerankApi, count: int, server: str) -> list[float | None]:
    """Return the scores in the order of the documents; None for a score that is not a finite number.

    Raises UserError if there is not one result for each document.
    """
    results = body if not api.results else body.get(api.results) if isinstance(body, dict) else None
    if not isinstance(results, list) or not all(isinstance(item, dict) for item in results):
        raise UserError(f"{server}: the answer has no list of results; check the base URL")
    if len(results) != count:
        raise UserError(f"{server}: {len(results)} scores were returned for {count} documents")
    indices = [item.get("index") for item in results]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(count)):
        raise UserError(f"{server}: the returned scores are not numbered 0 to {count - 1}, each once")
    by_index = dict(zip(indices, results, strict=True))
    return [_number(by_index[index].get(api.score)) for index in range(count)]


def _number(score: Any) -> float | None:
    if type(score) not in (int, float) or not math.isfinite(score) or abs(score) > MAX_SCORE:
        return None
    return float(score)


MAX_SCORE = 3e38
"""Largest score that a run can hold: its scores are in single precision."""


def billed_searches(body: Any, documents: int) -> float:
    """Return the number of searches on the bill of Cohere's API; without a bill, one for each hundred documents."""
    units: Any = body
    for name in ("meta", "billed_units", "search_units"):
        units = units.get(name) if isinstance(units, dict) else None
    known = type(units) in (int, float) and math.isfinite(units) and 0 <= units <= documents * 1000
    return float(units) if known else float(math.ceil(documents / DOCUMENTS_PER_SEARCH))


def most_searches(query: str, documents: Sequence[str]) -> int:
    """Return the most searches that Cohere may bill: long documents count as several."""
    asked = len(query.encode())
    parts = sum(math.ceil((asked + len(document.encode()) + 1) / BYTES_PER_DOCUMENT) for document in documents)
    return math.ceil(parts / DOCUMENTS_PER_SEARCH)


def with_limit(api: RerankApi, documents: int) -> RerankApi:
    """Return an API with another limit of documents in a request. 0: its own."""
    return api.model_copy(update={"documents_per_request": documents}) if documents else api
