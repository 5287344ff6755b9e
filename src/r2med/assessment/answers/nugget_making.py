"""Let an LLM take reference answers apart into nuggets, once for each question. People can review them afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import Nugget, Nuggets
from r2med.evaluation.running.plan_page import Plan, PlanRow
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.text.english import english
from r2med.models.ask.answers import LLMAnswer, Text, one_of
from r2med.models.ask.ask import Ask, AskedItem
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import resolve_llm
from r2med.models.prompts.templates import packaged_template

MAX_NUGGETS = 12
"""Maximum number of nuggets of a question."""

_ENTRIES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "importance": {"type": "string", "enum": ["vital", "okay"]}},
        "required": ["text", "importance"],
        "additionalProperties": False,
    },
}


class _Fact(LLMAnswer):
    """One fact, as an LLM writes it."""

    text: Text
    importance: Annotated[str, one_of("vital", "okay")]


def _facts(value: Any) -> list[_Fact]:
    """Read the list of an LLM. A fact that it repeats counts once."""
    if not isinstance(value, list):
        raise ValueError("not a list of nuggets")
    facts = [_Fact.model_validate(dict(entry)) for entry in value]
    distinct = {tuple(sorted(set(english(fact.text)))): fact for fact in reversed(facts)}
    if not 0 < len(distinct) <= MAX_NUGGETS:
        raise ValueError(f"{len(distinct)} nuggets are not 1 to {MAX_NUGGETS}")
    return [fact for fact in facts if fact in distinct.values()]


class _References(LLMAnswer):
    """The facts of one reference."""

    nuggets: Annotated[list[Any], BeforeValidator(_facts), WithJsonSchema(_ENTRIES)]


@dataclass(frozen=True)
class MadeNuggets:
    """Nuggets that an LLM wrote, and the questions for which it wrote none that can be used."""

    nuggets: Nuggets
    failures: Mapping[str, str]
    """Query -> kind of failure."""
    cost: Cost

    @property
    def kinds(self) -> Counter[str]:
        """Kind of failure -> number of questions."""
        return Counter(self.failures.values())


@dataclass(frozen=True)
class NuggetPlan:
    """The questions of a dataset whose references are taken apart, before anything is asked."""

    queries: tuple[Query, ...]
    question: Ask
    label: str
    """The label of the dataset in the store."""

    @property
    def llm(self) -> str:
        """The LLM that is asked."""
        return self.question.chat.card.spec

    @property
    def items(self) -> list[AskedItem]:
        """The questions with their references, as the LLM is asked about them."""
        return [
            AskedItem({"question": query.text, "text": query.answer, "most": str(MAX_NUGGETS)})
            for query in self.queries
        ]

    def plan(self, setup: Setup) -> Plan:
        """Return what asking would cost. Nothing is asked."""
        example = self.question.example(self.items)
        needs = self.question.needs(self.items, setup)
        return Plan((PlanRow(self.llm, (needs,)),), {self.llm: example} if example else {})

    def make(self) -> MadeNuggets:
        """Ask the LLM. Raises UserError if it wrote nothing that can be used."""
        asked = self.question.about(self.label).ask(self.items, self._nuggets)
        if not asked.outcomes:
            raise UserError(f"{self.llm} wrote no nuggets that can be used: try another LLM")
        made = Nuggets.of(nugget for number in sorted(asked.outcomes) for nugget in asked.outcomes[number])
        failures = {self.queries[number].id: kind for number, kind in asked.failures.items()}
        return MadeNuggets(made, failures, asked.cost)

    def _nuggets(self, number: int, answer: _References) -> list[Nugget]:
        facts: Iterable[_Fact] = answer.nuggets
        return [
            Nugget(self.queries[number].id, f"n{place}", fact.text, fact.importance == "vital", self.llm)
            for place, fact in enumerate(facts, 1)
        ]


def plan_nuggets(dataset: Dataset, llm: str, runtime: Runtime) -> NuggetPlan:
    """Return what would be asked. Raises UserError if no query has a reference answer, or the LLM is unknown."""
    queries = tuple(query for query in dataset.queries if query.answer.strip())
    if not queries:
        raise UserError(f"{dataset.name} has no reference answers: nuggets are made from the field 'answer' of queries")
    chat = open_chat(resolve_llm(llm, runtime.setup), runtime)
    prompt = packaged_template("r2med.assessment.answers", "make-nuggets")
    return NuggetPlan(queries, Ask(chat, prompt, _References), dataset.label)
