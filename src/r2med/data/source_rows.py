"""The rows a source is made of: reading them from JSON Lines, with every fault named by file and line, none fatal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data.problems import Problems
from r2med.text.unicode import is_unicode

Fields = Mapping[str, type | tuple[type, ...]]

TRUNCATED = "truncated last line: the file ends inside a row; copy or download it again"

_WORDS = {str: "a string", int: "a whole number", list: "a list", float: "a number", bool: "true or false"}


def read_lines(path: Path, problems: Problems) -> Iterator[tuple[int, str, bool]]:
    """Yield (line number, text, whether it ended in a newline) for each non-blank line of valid UTF-8."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            try:
                yield number, raw.decode("utf-8"), raw.endswith(b"\n")
            except UnicodeDecodeError as error:
                if error.end == len(raw) and error.reason == "unexpected end of data":
                    problems.add(path, number, TRUNCATED)
                else:
                    problems.add(path, number, f"invalid UTF-8 at byte {error.start + 1} of the line: save it as UTF-8")


def read_jsonl(
    path: Path, required: Fields, problems: Problems, optional: Fields | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for each line that has the required fields in the right types."""
    for number, line, ended in read_lines(path, problems):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.add(path, number, _json_fault(error, ended))
            continue
        if not isinstance(row, dict):
            problems.add(path, number, f"not a JSON object but {_kind(row)}")
            continue
        found = [*faults(row, required, must=True), *faults(row, optional or {}, must=False)]
        for fault in found:
            problems.add(path, number, fault)
        if not found:
            yield number, row


def _json_fault(error: Exception, ended: bool) -> str:
    if not ended:
        return TRUNCATED
    if isinstance(error, json.JSONDecodeError):
        return f"bad JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
    return f"bad JSON: {error}"


def faults(row: dict[str, Any], fields: Fields, must: bool) -> Iterator[str]:
    """Yield what is wrong with a row: fields that are missing (if they must be there) or of another type."""
    for name, kinds in fields.items():
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        if name not in row:
            if must:
                yield f"missing field {name!r}"
        elif type(row[name]) not in allowed and not (row[name] is None and not must):
            yield f"field {name!r} must be {_WORDS[allowed[0]]}, found {_kind(row[name])}"
        elif isinstance(row[name], str) and not is_unicode(row[name]):
            yield f"field {name!r} holds a lone surrogate, which is not Unicode text: repair or remove the character"


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"[:40]
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


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
