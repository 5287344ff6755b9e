"""Reading JSON Lines with every fault named by file and line, none of them fatal to the reading."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
