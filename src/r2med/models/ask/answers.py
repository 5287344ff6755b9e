"""Models of LLM answers. Their JSON schema is sent with the question, and they check every answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, create_model

_SCHEMA_KEYWORDS = ("type", "items", "enum")
"""Keywords of a field's schema that are sent. Every API knows them, but not titles, defaults and bounds. Their order
must not change, since the schema is part of a request's key in the journal."""

_LETTER = re.compile(r"\(?([A-Z])(?:[.):].*)?", re.IGNORECASE | re.DOTALL)


class LLMAnswer(BaseModel):
    """One answer of an LLM. The LLM writes the fields in this order, so put the reason before the conclusion."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def json_schema(cls) -> str:
        """Return the JSON schema that is sent with a question. Every field is required, and no other is allowed."""
        properties = cls.model_json_schema()["properties"]
        fields = {
            name: {key: part[key] for key in _SCHEMA_KEYWORDS if key in part} for name, part in properties.items()
        }
        schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
        return json.dumps(schema)


def word_of(value: Any, words: Sequence[str]) -> Any:
    """Return the one of these words that a value is, in upper or lower case. Raises ValueError for another value."""
    by_lower = {word.lower(): word for word in words}
    if not isinstance(value, str) or value.strip().lower() not in by_lower:
        raise ValueError(f"{value!r} is not one of {', '.join(words)}")
    return by_lower[value.strip().lower()]


def one_of(*words: str) -> BeforeValidator:
    """Return the reader of a field that holds one of these words, in upper or lower case."""
    return BeforeValidator(lambda value: word_of(value, words), json_schema_input_type=Literal[words])


def number_up_to(highest: int) -> BeforeValidator:
    """Return the reader of a field that holds a whole number from 0 to `highest`."""
    numbers = tuple(range(highest + 1))

    def read(value: Any) -> int:
        number = float(value)
        if isinstance(value, bool) or number not in numbers:
            raise ValueError(f"{value!r} is not a whole number from 0 to {highest}")
        return int(number)

    return BeforeValidator(read, json_schema_input_type=Literal[numbers])


def letter(count: int) -> BeforeValidator:
    """Return the reader of a field that names one of `count` options by its letter, such as "B" or "B. Measles"."""
    letters = _letters(count)

    def read(value: Any) -> int:
        """Return the number of the option, from 0."""
        match = _LETTER.fullmatch(str(value).strip())
        return letters.index(word_of(match[1] if match else value, letters))

    return BeforeValidator(read, json_schema_input_type=Literal[letters])


def _letters(count: int) -> tuple[str, ...]:
    return tuple(chr(ord("A") + number) for number in range(count))


def _truth(value: Any) -> bool:
    return value if isinstance(value, bool) else word_of(value, ("true", "false")) == "true"


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A text that is not empty."""
Remark = Annotated[str, BeforeValidator(lambda value: value.strip() if isinstance(value, str) else "")]
"""A text that may be empty. A field with the default "" may also be missing."""
Texts = list[str]
Truth = Annotated[bool, BeforeValidator(_truth)]


class OpenAnswer(LLMAnswer):
    """An answer in the LLM's own words."""

    answer: Text


class Choice(LLMAnswer):
    """The number of the chosen option, from 0."""

    choice: int


class WrittenChoice(LLMAnswer):
    """The words in which an LLM names the option that it chooses."""

    choice: Text


@cache
def written_choice_of(count: int) -> type[WrittenChoice]:
    """Return the model of a choice among `count` options in any words. The schema asks for a letter."""
    any_words = BeforeValidator(lambda value: value, json_schema_input_type=Literal[_letters(count)])
    return create_model("WrittenChoiceOf", __base__=WrittenChoice, choice=(Annotated[Text, any_words], ...))


@cache
def choice_of(count: int) -> type[Choice]:
    """Return the model of a choice among `count` options."""
    return create_model("ChoiceOf", __base__=Choice, choice=(Annotated[int, letter(count)], ...))
