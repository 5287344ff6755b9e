"""Reading what a /retrieve server answered; whatever is not the protocol's answer is refused with its reason."""

from __future__ import annotations

import json
import math
from typing import Any

from r2med.agents.contracts import Document
from r2med.text.unicode import to_unicode


class MalformedAnswer(Exception):  # noqa: N818 - reads as what came
    """What came is not what the protocol says."""


def read_answer(body: bytes, queries: int) -> list[tuple[Document, ...]]:
    """Return the documents of each query."""
    try:
        content: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedAnswer("it is not JSON") from None
    result = content.get("result") if isinstance(content, dict) else None
    if not isinstance(result, list):
        raise MalformedAnswer("it has no list 'result'")
    if len(result) != queries:
        raise MalformedAnswer(f"it has {len(result)} lists for {queries} queries")
    if not all(isinstance(found, list) for found in result):
        raise MalformedAnswer("a query's documents are no list")
    return [tuple(_document(entry) for entry in found) for found in result]


def as_notes(documents: tuple[Document, ...]) -> dict[str, Any]:
    """Return documents as the store keeps them."""
    return {"documents": [[document.id, document.contents, document.score] for document in documents]}


def from_notes(value: dict[str, Any]) -> tuple[Document, ...]:
    """Return documents that the store kept."""
    return tuple(Document(*fields) for fields in value["documents"])


def _document(entry: Any) -> Document:
    document = entry.get("document") if isinstance(entry, dict) else None
    if not isinstance(document, dict):
        raise MalformedAnswer("an entry has no object 'document'")
    name, text, score = document.get("id"), document.get("contents"), entry.get("score")
    if type(name) is int:  # some corpora number their documents
        name = str(name)
    if not isinstance(name, str) or not isinstance(text, str):
        raise MalformedAnswer("a document lacks 'id' or 'contents'")
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise MalformedAnswer("a document has no number 'score'")
    return Document(name, to_unicode(text), float(score))
