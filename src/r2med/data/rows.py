"""The rows a source is made of, and the faults that only their content shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data.problems import Problems
from r2med.text.unicode import is_unicode


@dataclass(frozen=True, slots=True)
class Document:
    """One row of a corpus, with where it stands for messages."""

    id: str
    text: str
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query as written, with where it stands."""

    id: str
    text: str
    path: Path
    line: int
    answer: str = ""
    body_system: str = ""
    sources: tuple[str, ...] = ()
    """Documents the query was made from; they are left out of its results unless they are judged relevant."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One line of qrels."""

    query: str
    document: str
    grade: int
    path: Path
    line: int


def place(path: Path, line: int, seen_from: Path) -> str:
    """Return where a row stands, in words for a message about a row of the file `seen_from`."""
    return f"line {line}" if path == seen_from else f"{path.name}:{line}"


def document_row(identifier: str, text: str, path: Path, line: int, problems: Problems) -> Document | None:
    """Return the document, or None with its fault reported."""
    if not identifier:
        problems.add(path, line, "empty id: every document needs one")
        return None
    if not text.strip():
        problems.flaw(path, line, f"document {identifier!r} has an empty text")
    return Document(identifier, text, path, line)


def query_row(row: dict[str, Any], path: Path, line: int, problems: Problems) -> QueryRow | None:
    """Return the query, or None with its fault reported."""
    if not row["id"]:
        problems.add(path, line, "empty id: every query needs one")
        return None
    if not row["text"].strip():
        problems.flaw(path, line, f"query {row['id']!r} has an empty text")
    sources: list[str] = []
    for field in ("doc_id", "excluded_ids"):
        value = row.get(field) or []
        sources += [value] if isinstance(value, str) else value
    if not all(isinstance(source, str) and is_unicode(source) for source in sources):
        problems.add(path, line, "fields 'doc_id' and 'excluded_ids' must be lists of strings of Unicode text")
        return None
    return QueryRow(
        id=row["id"],
        text=row["text"],
        path=path,
        line=line,
        answer=row.get("answer") or "",
        body_system=row.get("body_system") or "",
        sources=tuple(sources),
    )


def judgement_row(row: dict[str, Any], path: Path, line: int, problems: Problems) -> Judgement | None:
    """Return the judgement of a JSON or Parquet row, or None with its fault reported."""
    if isinstance(row["score"], float) and not row["score"].is_integer():
        problems.add(path, line, f"score {row['score']} is not a whole number")
        return None
    return Judgement(row["q_id"], row["p_id"], int(row["score"]), path, line)
