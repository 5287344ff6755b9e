"""Let a judge decide which nuggets an answer contains, and in which of its sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, WithJsonSchema

from r2med.assessment.panels.raters import refuse_lost
from r2med.assessment.rubrics.item import Item
from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import Nugget, Nuggets
from r2med.evaluation.records.answer_words import NuggetVerdict
from r2med.models.ask.answers import LLMAnswer, word_of
from r2med.models.ask.ask import Ask, AskedItem

MAX_SENTENCES = 50
"""Number of sentences of an answer that are judged. Further sentences say no nugget and support nothing, so that a
reader gains nothing by writing on, and the cost of a judge has a limit."""

_MATCHES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "nugget": {"type": "integer"},
            "sentences": {"type": "array", "items": {"type": "integer"}},
            "said": {"type": "string", "enum": list(get_args(NuggetVerdict))},
        },
        "required": ["nugget", "sentences", "said"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class NuggetMatch:
    """How much of a nugget an answer says, and the numbers of the sentences that say it, from 1."""

    nugget: int
    sentences: tuple[int, ...]
    said: NuggetVerdict


def _matches(value: Any) -> list[NuggetMatch]:
    """Read the list of a judge. A nugget that is said must name its sentences."""
    if not isinstance(value, list):
        raise ValueError("not a list of nuggets")
    found = []
    for entry in value:
        fields = dict(entry)
        said = word_of(fields.get("said"), get_args(NuggetVerdict))
        sentences = tuple(_number(each) for each in fields.get("sentences") or ())
        if said != "none" and not sentences:
            raise ValueError("a nugget is said to be there, but in no sentence")
        found.append(NuggetMatch(_number(fields.get("nugget")), sentences if said != "none" else (), said))
    return found


def _number(value: Any) -> int:
    number = float(value)
    if isinstance(value, bool) or not number.is_integer():
        raise ValueError(f"{value!r} is not a whole number")
    return int(number)


class MatchedNuggets(LLMAnswer):
    """The verdict of a judge on every nugget of a question."""

    nuggets: Annotated[list[Any], BeforeValidator(_matches), WithJsonSchema(_MATCHES)]


@dataclass(frozen=True)
class AnswerNuggets:
    """What a judge found in one answer."""

    said: Mapping[str, NuggetVerdict]
    """Id of a nugget -> how much of it the answer says."""
    sentences: int
    """Number of sentences that say a nugget, completely or in part."""


def nugget_item(dataset: Dataset, query: Query, nuggets: Sequence[Nugget], sentences: Sequence[str]) -> Item:
    """Return the question about the nuggets of one answer."""
    texts = {
        "question": query.text,
        "nuggets": "\n".join(f"{number}. {_line(nugget.text)}" for number, nugget in enumerate(nuggets, 1)),
        "text": "\n".join(f"{number}. {_line(text)}" for number, text in enumerate(sentences[:MAX_SENTENCES], 1)),
    }
    return Item((query.id, ""), texts, "match-nuggets", source=dataset.name)


def match_nuggets(
    ask: Ask,
    items: Sequence[Item],
    nuggets: Mapping[str, Nuggets],
) -> tuple[dict[int, AnswerNuggets], dict[int, str]]:
    """Match the nuggets of answers. Return what was found and the kinds of failures, by the number of the item.

    `nuggets` are those of each dataset. Raises UserError if the server fails.
    """

    def read(number: int, answer: MatchedNuggets) -> AnswerNuggets:
        item = items[number]
        return _found(answer.nuggets, nuggets_of_item(item, nuggets), len(item.texts["text"].splitlines()))

    answers = ask.ask([AskedItem(item.texts) for item in items], read)
    refuse_lost(ask.chat.card.spec, answers.failures, len(items))
    return answers.outcomes, answers.failures


def nuggets_of_item(item: Item, nuggets: Mapping[str, Nuggets]) -> Sequence[Nugget]:
    """Return the nuggets that an item is about."""
    return nuggets[item.source].by_query[item.id[0]]


def _found(matches: Sequence[NuggetMatch], nuggets: Sequence[Nugget], sentences: int) -> AnswerNuggets:
    """Return the matches by id. Raises ValueError if a nugget is missing or repeated, or a sentence does not exist."""
    if sorted(match.nugget for match in matches) != list(range(1, len(nuggets) + 1)):
        raise ValueError("not every nugget was judged once")
    named = {number for match in matches for number in match.sentences}
    if not named <= set(range(1, sentences + 1)):
        raise ValueError("a sentence does not exist")
    return AnswerNuggets({nuggets[match.nugget - 1].id: match.said for match in matches}, len(named))


def _line(text: str) -> str:
    """Return a text on one line, so that it cannot look like several numbered ones."""
    return " ".join(text.split())
