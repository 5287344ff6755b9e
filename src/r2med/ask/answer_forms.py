"""What an LLM's answer holds, field by field: sent as the schema of the answer where an LLM takes one, and checked in
any case."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_LETTER = re.compile(r"\(?([A-Z])(?:[.):].*)?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Part:
    """One field of an answer."""

    schema: Mapping[str, Any]
    """Its JSON schema, in words that every API knows: no bounds of lengths or numbers."""
    read: Callable[[Any], Any]
    """Returns the value. Raises ValueError or TypeError if it is not what was asked for."""


Form = Mapping[str, Part]
"""The fields of an answer in the order in which they are to be written: reasons before what follows from them."""


def _words(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is no text")
    return value.strip()


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{value!r} is no list of texts")
    return value


TEXT = Part({"type": "string"}, _words)
REMARK = Part({"type": "string"}, lambda value: value.strip() if isinstance(value, str) else "")
"""A text that may be empty, or missing."""
NAMES = Part({"type": "array", "items": {"type": "string"}}, _names)


def one_of(*words: str) -> Part:
    """Return a field that is one of some words, whatever its case."""
    by_lower = {word.lower(): word for word in words}

    def read(value: Any) -> str:
        if not isinstance(value, str) or value.strip().lower() not in by_lower:
            raise ValueError(f"{value!r} is none of {', '.join(words)}")
        return by_lower[value.strip().lower()]

    return Part({"type": "string", "enum": list(words)}, read)


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else one_of("true", "false").read(value) == "true"


TRUTH = Part({"type": "boolean"}, _truth)


def score(highest: int) -> Part:
    """Return a field that is a whole number from 0 on."""

    def read(value: Any) -> int:
        number = float(value)
        if isinstance(value, bool) or number not in range(highest + 1):
            raise ValueError(f"{value!r} is no whole number from 0 to {highest}")
        return int(number)

    return Part({"type": "integer", "enum": list(range(highest + 1))}, read)


def letter(count: int) -> Part:
    """Return a field that names one of so many options by its letter; "B. Measles" does too."""
    letters = one_of(*map(chr, range(ord("A"), ord("A") + count)))

    def read(value: Any) -> int:
        """Return the number of the option, from 0."""
        match = _LETTER.fullmatch(_words(value))
        return ord(letters.read(match[1] if match else value)) - ord("A")

    return Part(letters.schema, read)


def schema_of(form: Form) -> str:
    """Return the JSON schema of an answer, as JSON."""
    fields = {name: part.schema for name, part in form.items()}
    return json.dumps({"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False})


def read_form(form: Form, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an answer. Raises ValueError or TypeError if one is not what was asked for."""
    return {name: part.read(answer.get(name)) for name, part in form.items()}
