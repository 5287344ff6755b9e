"""Answers of LLMs as pydantic models: their JSON schema goes with the question, and every answer is checked by them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

_LETTER = re.compile(r"\(?([A-Z])(?:[.):].*)?", re.IGNORECASE | re.DOTALL)


class Answer(BaseModel):
    """One answer of an LLM. Its fields are written in their order: put the reason before what follows from it."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def json_schema(cls) -> str:
        """Return the schema that is sent with a question, as JSON: every field is required, no other is allowed."""
        properties = cls.model_json_schema()["properties"]
        fields = {name: {key: part[key] for key in _SENT if key in part} for name, part in properties.items()}
        schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
        return json.dumps(schema)


_SENT = ("type", "items", "enum")
"""What is sent of a field's schema: the words that every API knows. Titles, defaults and bounds are not
among them. Their order is that of earlier versions, since the schema is part of a request's key in the journal."""


@dataclass(frozen=True)
class Reading:
    """How a field is read, and the JSON schema it has: `Annotated[str, Reading(...)]`."""

    schema: str
    """As JSON, since a mark of a type must be hashable."""
    read: Callable[[Any], Any]
    """Returns the value. Raises ValueError or TypeError if it is not what was asked for."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read the value before pydantic checks its type."""

        def read(value: Any) -> Any:
            try:
                return self.read(value)
            except (TypeError, OverflowError) as error:  # pydantic reports a ValueError
                raise ValueError(str(error)) from None

        return core_schema.no_info_before_validator_function(read, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema as it is sent."""
        schema: dict[str, Any] = json.loads(self.schema)
        return schema


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is not a text")
    return value.strip()


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{value!r} is not a list of texts")
    return value


def one_of(*words: str) -> Reading:
    """Return the reading of a field that holds one of these words, in any case."""
    by_lower = {word.lower(): word for word in words}

    def read(value: Any) -> str:
        if not isinstance(value, str) or value.strip().lower() not in by_lower:
            raise ValueError(f"{value!r} is not one of {', '.join(words)}")
        return by_lower[value.strip().lower()]

    return Reading(json.dumps({"type": "string", "enum": list(words)}), read)


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else one_of("true", "false").read(value) == "true"


def score(highest: int) -> Reading:
    """Return the reading of a field that holds a whole number from 0 to `highest`."""

    def read(value: Any) -> int:
        number = float(value)
        if isinstance(value, bool) or number not in range(highest + 1):
            raise ValueError(f"{value!r} is not a whole number from 0 to {highest}")
        return int(number)

    return Reading(json.dumps({"type": "integer", "enum": list(range(highest + 1))}), read)


def letter(count: int) -> Reading:
    """Return the reading of a field that names one of `count` options by its letter, as "B" or "B. Measles"."""
    letters = one_of(*map(chr, range(ord("A"), ord("A") + count)))

    def read(value: Any) -> int:
        """Return the number of the option, from 0."""
        match = _LETTER.fullmatch(_text(value))
        return ord(letters.read(match[1] if match else value)) - ord("A")

    return Reading(letters.schema, read)


_STRING = json.dumps({"type": "string"})

Text = Annotated[str, Reading(_STRING, _text)]
"""A text that is not empty."""
Remark = Annotated[str, Reading(_STRING, lambda value: value.strip() if isinstance(value, str) else "")]
"""A text that may be empty. Give it the default "" so that it may be missing."""
Texts = Annotated[list[str], Reading(json.dumps({"type": "array", "items": {"type": "string"}}), _texts)]
Truth = Annotated[bool, Reading(json.dumps({"type": "boolean"}), _truth)]


class OpenAnswer(Answer):
    """An answer in one's own words."""

    answer: Text


class Choice(Answer):
    """The number of the chosen option, from 0."""

    choice: int


@cache
def choice_of(count: int) -> type[Choice]:
    """Return the model of a choice among `count` options."""
    return create_model("ChoiceOf", __base__=Choice, choice=(Annotated[int, letter(count)], ...))
