"""Read the rows of a source from JSON Lines. Every fault is reported with file and line, and reading continues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data.grades import GradeError, whole_grade
from r2med.data.problems import Problems
from r2med.foundation.store.files import refuse_device
from r2med.foundation.text.unicode import is_unicode

Fields = Mapping[str, type | tuple[type, ...]]

TRUNCATED_MESSAGE = "truncated last line: the file ends inside a row; copy or download it again"

_SYNONYMS = {
    "text": ("contents", "content", "passage", "body", "document", "question", "query"),
    "p_id": ("corpus-id", "corpus_id", "doc_id", "docid", "pid"),
    "q_id": ("query-id", "query_id", "qid"),
    "score": ("grade", "relevance", "label", "rel"),
}
"""Other common names of the fields that are read here."""

_WORDS = {str: "a string", int: "a whole number", list: "a list", float: "a number", bool: "true or false"}


def read_lines(path: Path, problems: Problems) -> Iterator[tuple[int, str, bool]]:
    """Yield (line number, text, whether it ended in a newline) for each non-blank line of valid UTF-8."""
    refuse_device(path)
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
                    problems.add(path, number, TRUNCATED_MESSAGE)
                else:
                    message = f"invalid UTF-8 at byte {error.start + 1} of the line: save it as UTF-8"
                    problems.add(path, number, message, "invalid UTF-8: save it as UTF-8")


def read_jsonl(
    path: Path, required: Fields, problems: Problems, optional: Fields | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for each line that has the required fields in the right types."""
    for number, line, ended in read_lines(path, problems):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.add(path, number, _json_fault(error, ended), "" if not ended else "bad JSON")
            continue
        if not isinstance(row, dict):
            problems.add(path, number, f"not a JSON object but {_kind(row)}")
            continue
        if not report_faults(row, required, optional or {}, path, number, problems):
            yield number, row


_JSON_FAULTS = {
    "Expecting value": "a value is missing",
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Expecting property name enclosed in double quotes": "a field name in double quotes is missing",
    "Illegal trailing comma before end of object": "a comma too many",
    "Illegal trailing comma before end of array": "a comma too many",
    "Extra data": "a second value",
    "Unterminated string starting": "a text without a closing quote",
    "Invalid control character": "a line break or another control character inside a text",
    "Invalid \\escape": "a backslash that is not doubled",
}
"""Messages of Python's reader of JSON in words that a person can act on."""


def _json_fault(error: Exception, ended: bool) -> str:
    if not ended:
        return TRUNCATED_MESSAGE
    if isinstance(error, json.JSONDecodeError):
        message = error.msg.removesuffix(" at")
        return f"bad JSON: {_JSON_FAULTS.get(message, message)} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "bad JSON: it is nested too deeply"
    return f"bad JSON: {error}"


def report_faults(
    row: dict[str, Any], required: Fields, optional: Fields, path: Path, line: int, problems: Problems
) -> int:
    """Report fields that are missing or of a wrong type, and return their number."""
    count = 0
    for name, kinds in {**optional, **required}.items():
        allowed = kinds if isinstance(kinds, tuple) else (kinds,)
        value = row.get(name)
        if name in required and name not in row:
            problems.add(path, line, f"missing field {name!r} ({_row_has(row, name)})")
        elif type(value) not in allowed and (name in required or value is not None):
            wanted = f"field {name!r} must be {_WORDS[allowed[0]]}"
            problems.add(path, line, f"{wanted}, found {_kind(value)}", wanted)
        elif isinstance(value, str) and not is_unicode(value):
            fault = "holds a lone surrogate, which is not Unicode text: repair or remove the character"
            problems.add(path, line, f"field {name!r} {fault}")
        else:
            continue
        count += 1
    return count


def _row_has(row: dict[str, Any], missing: str) -> str:
    """Return a list of the fields that a row has, with a hint at the most likely one."""
    names = [name if name.isprintable() and len(name) <= 30 else ascii(name)[:30] for name in list(row)[:6]]
    if not names:
        return "the row is empty"
    meant = [name for name in names if missing.lower() in name.lower() or name.lower() in _SYNONYMS.get(missing, ())]
    hint = f": is it `{meant[0]}`?" if meant else ""
    return f"rows have {', '.join(names)}{', …' if len(row) > len(names) else ''}{hint}"


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
class DocumentRow:
    """One row of a corpus, with its file and line for messages."""

    id: str
    text: str
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One row of a query file, with its file and line for messages."""

    id: str
    text: str
    path: Path
    line: int
    answer: str = ""
    body_system: str = ""
    excluded: tuple[str, ...] = ()
    """Documents that are removed from the results of this query unless they are judged relevant."""
    needs_inference: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgementRow:
    """One line of qrels."""

    query: str
    document: str
    grade: int
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class AspectRow:
    """One aspect of the answer to a query, with the documents that support it."""

    query: str
    id: str
    weight: float
    documents: tuple[str, ...]
    path: Path
    line: int


def where(path: Path, line: int, seen_from: Path) -> str:
    """Return the file and line of a row, for a message about a row of the file `seen_from`."""
    return f"line {line}" if path == seen_from else f"{path.name}:{line}"


def with_title(row: dict[str, Any]) -> str:
    """Return the title and text of a document in one string, joined as by BEIR's evaluators."""
    title: str = row.get("title") or ""
    return f"{title} {row['text']}".strip() if title.strip() else row["text"]


def document_row(identifier: str, text: str, path: Path, line: int, problems: Problems) -> DocumentRow | None:
    """Return a document, or report its fault and return None."""
    if not identifier:
        problems.add(path, line, "empty id: every document needs one")
        return None
    if not text.strip():
        problems.flaw(
            path,
            line,
            f"document {identifier!r} has an empty text",
            "document with an empty text",
            check="empty-documents",
        )
    return DocumentRow(identifier, text, path, line)


def query_row(row: dict[str, Any], path: Path, line: int, problems: Problems) -> QueryRow | None:
    """Return a query, or report its fault and return None."""
    if not row["id"]:
        problems.add(path, line, "empty id: every query needs one")
        return None
    if not row["text"].strip():
        problems.flaw(
            path, line, f"query {row['id']!r} has an empty text", "query with an empty text", check="scorable-queries"
        )
    excluded = row.get("excluded_ids") or []
    if not all(isinstance(document, str) and is_unicode(document) for document in excluded):
        problems.add(path, line, "field 'excluded_ids' must be a list of strings of Unicode text")
        return None
    options = _options(row, path, line, problems)
    return QueryRow(
        id=row["id"],
        text=row["text"],
        path=path,
        line=line,
        answer=row.get("answer") or "",
        body_system=row.get("body_system") or "",
        excluded=tuple(excluded),
        needs_inference=row.get("needs_inference") or "",
        options=options,
    )


def _options(row: dict[str, Any], path: Path, line: int, problems: Problems) -> tuple[str, ...]:
    """Return the options of a multiple-choice question. Options without the answer are reported and left out."""
    given = row.get("options") or []
    texts = given.values() if isinstance(given, dict) else given  # {"A": "gout", …} or a list
    options = tuple(text for text in texts if text is not None)  # a table has a cell for each letter
    if options and (row.get("answer") not in options or len(set(map(str, options))) < max(2, len(options))):
        message = f"query {row['id']!r}: its options must be two or more different texts, and one of them the answer"
        problems.flaw(path, line, message, "options without the answer")
        return ()
    return options


def judgement_row(row: dict[str, Any], path: Path, line: int, problems: Problems) -> JudgementRow | None:
    """Return the judgement of a JSON or Parquet row, or report its fault and return None."""
    try:
        grade = whole_grade(row["score"])
    except GradeError as error:
        problems.add(path, line, f"score {str(row['score'])[:20]} {error.fault}", f"score {error.fault}")
        return None
    return JudgementRow(row["q_id"], row["p_id"], grade, path, line)
