"""Say what is wrong with a row of a file, in words that a person can act on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from r2med.foundation.text.unicode import is_unicode

TRUNCATED_MESSAGE = "truncated last line: the file ends inside a row; copy or download it again"

_SYNONYMS = {
    "text": ("contents", "content", "passage", "body", "document", "question", "query"),
    "p_id": ("corpus-id", "corpus_id", "doc_id", "docid", "pid"),
    "q_id": ("query-id", "query_id", "qid"),
    "score": ("grade", "relevance", "label", "rel"),
}
"""Other common names of the fields that are read here."""

_KINDS = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
}
"""Pydantic's type of an error -> what a value should be."""

HALF_CHARACTER = "holds a lone surrogate, which is not Unicode text: repair or remove the character"

_UNICODE_TEXTS = "a list of strings of Unicode text"


def half_characters(cells: Mapping[str, Any], columns: Iterable[str]) -> Iterator[str]:
    """Yield the faults of texts with lone surrogates, which only escapes of JSON can write."""
    for name in columns:
        value = cells.get(name)
        if isinstance(value, str) and not is_unicode(value):
            yield f"field {name!r} {HALF_CHARACTER}"
        elif isinstance(value, list) and not all(is_unicode(text) for text in value if isinstance(text, str)):
            yield f"field {name!r} must be {_UNICODE_TEXTS}"


def row_faults(error: ValidationError, cells: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield message and cause of each field that is missing or wrong."""
    reported = set()
    for fault in error.errors():
        kind, place = fault["type"], fault["loc"]
        if not place:
            yield f"the field name {fault['input']!r} {HALF_CHARACTER}", ""
            continue
        name = str(place[0])
        if name in reported:  # another type that it may have
            continue
        reported.add(name)
        if kind == "missing":
            yield f"missing field {name!r} ({_row_has(cells, name)})", ""
        elif kind == "extra_forbidden":
            yield f"unknown field {name!r}", ""
        elif isinstance(place[-1], int):
            yield f"field {name!r} must be {_UNICODE_TEXTS}", ""
        elif kind in _KINDS:
            wanted = f"field {name!r} must be {_KINDS[kind]}"
            yield f"{wanted}, found {kind_of(cells.get(name))}", wanted
        elif kind == "value_error":  # a validator of the row names the field itself
            yield str(fault["ctx"]["error"]), ""
        else:
            yield f"field {name!r}: {fault['msg'].replace('Input should be', 'it must be')}", ""


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


def json_fault(error: Exception, ended: bool) -> str:
    """Return what is wrong with a line that is no JSON. `ended` is False if it lacks its newline."""
    if not ended:
        return TRUNCATED_MESSAGE
    if isinstance(error, json.JSONDecodeError):
        message = error.msg.removesuffix(" at")
        return f"bad JSON: {_JSON_FAULTS.get(message, message)} at column {error.colno}"
    if isinstance(error, RecursionError):
        return "bad JSON: it is nested too deeply"
    return f"bad JSON: {error}"


def _row_has(row: Mapping[str, Any], missing: str) -> str:
    """Return a list of the fields that a row has, with a hint at the most likely one."""
    names = [name if name.isprintable() and len(name) <= 30 else ascii(name)[:30] for name in list(row)[:6]]
    if not names:
        return "the row is empty"
    meant = [name for name in names if missing.lower() in name.lower() or name.lower() in _SYNONYMS.get(missing, ())]
    hint = f": is it `{meant[0]}`?" if meant else ""
    return f"rows have {', '.join(names)}{', …' if len(row) > len(names) else ''}{hint}"


def kind_of(value: Any) -> str:
    """Return the kind of a value of JSON, such as "a string"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"[:40]
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"
