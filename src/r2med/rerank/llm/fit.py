"""Prompts that fit the LLM: all passages of a prompt are cut to the same length, and the query never."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.errors import UserError
from r2med.llm.contracts import Failure, Message
from r2med.llm.llm_cards import LLMCard
from r2med.llm.tokens import prompt_tokens
from r2med.prompts.fitting import Fitted, Fitter
from r2med.prompts.templates import Template, open_templates
from r2med.rerank.llm.marks import passages_block, shortened

LEAST = 20
"""Words of a passage below which it cannot be judged."""


@dataclass(frozen=True)
class Question:
    """One call: passages to be judged for a query. All it holds are strings: no field of a query but its text."""

    query: str
    """The query in its marks."""
    passages: tuple[str, ...]
    hints: tuple[float, ...] = ()
    """What the stage before thought of them, where that is shown."""
    sample: int = 0


@dataclass(frozen=True)
class Prompts:
    """The template of one method for one kind of task, with what goes before it."""

    system: str
    ask: Template
    hash: str

    def messages(self, question: Question, words: int) -> tuple[Message, ...]:
        """Return the prompt with so many words of each passage."""
        texts = [shortened(text, words) for text in question.passages]
        values = {
            "query": question.query,
            "passages": passages_block(texts, question.hints),
            "count": str(len(texts)),
        }
        return Message("system", self.system), Message("user", self.ask.render(values))


def open_prompts(method: str, kind: str, folder: Path | None = None) -> Prompts:
    """Return what is needed to ask; files in the user's own folder go before those of plugins and ours."""
    templates = open_templates(folder, [kind])
    system, ask = templates.template("system"), templates.template(method, kind)
    if not ask.names("passages"):
        raise UserError(f"{ask.file}: it does not name {{passages}}: the model would have nothing to judge")
    return Prompts(system.text, ask, templates.hash)


def fitted(prompts: Prompts, card: LLMCard, questions: Sequence[Question], words: int) -> list[Fitted | Failure]:
    """Return the prompts; a failure where passages would have to be cut below what can be judged."""
    budget = Fitter(card, prompts.system).budget

    def fit(question: Question) -> Fitted | Failure:
        whole = prompts.messages(question, words)
        if prompt_tokens(whole) <= budget:
            return Fitted(whole)
        low, high = min(LEAST, words), words  # low fits, high does not
        least = prompts.messages(question, low)
        if (needed := prompt_tokens(least)) > budget:
            asked = f"a query with {low} words of each of {len(question.passages)} passages takes about {needed} tokens"
            return Failure("context_length", f"{asked}, {card.name} has {budget} for a prompt", attempts=0)
        while high - low > 1:
            middle = (low + high) // 2
            fits = prompt_tokens(prompts.messages(question, middle)) <= budget
            low, high = (middle, high) if fits else (low, middle)
        return Fitted(prompts.messages(question, low), cut=True)

    return [fit(question) for question in questions]
