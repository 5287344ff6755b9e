"""LLM reranker cards: one TOML file for each reranker that asks an LLM.

A card names a form (the stage that asks), the settings of that form, the layout of a prompt, and how an answer is read.
The wording is a prompt file of the same name. A new reranker of a known form is a card and a prompt file.
"""

from __future__ import annotations

import re
from pkgutil import resolve_name
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from r2med.foundation.core.keys import changed_values
from r2med.foundation.core.names import BUILT_IN_STAGES, Catalogue
from r2med.models.llm.llm_cards import LLMCard, with_named_llm

Unit = Literal["words", "characters", "tokens"]
Answer = Literal[
    "free-order", "order", "ties", "first-token", "label",
    "scores", "free-score", "score", "score-probability", "true-false",
]  # fmt: skip
"""Kinds of answers."""

NUMBERED = r"\[(\d+)\]"
"""Example of a pattern."""


class Limit(BaseModel):
    """How much of a text is shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    most: int = Field(ge=1, le=10_000_000)
    """The length of the text that is shown."""
    unit: Unit
    """What the length counts. Tokens are estimated, four bytes each."""
    word_characters: int | None = Field(None, ge=1)
    """Maximum number of characters that count as one word. A DNA sequence or a page of Chinese has no blanks."""


class LLMRerankerCard(BaseModel):
    """Everything that is needed to ask an LLM for an order, as the authors of a reranker did."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str
    """The name of the reranker. By default the name of the file."""
    variant: str = ""
    """The part of the name after the colon: NAME:VARIANT."""
    loader: Literal["llm"] = "llm"
    """The kind of card."""
    form: str
    """The stage that asks: windows in order, scored groups, single passages, or the best of a set."""
    settings: dict[str, Any] = {}
    """Settings of the form that differ from its defaults, such as window and step."""
    llm: LLMCard | None = None
    """The model of a trained reranker. Without it, the user names an LLM: NAME(LLM)."""
    prompt: str = ""
    """The name of the prompt file. By default the name of the card."""
    system: str = ""
    """The name of a prompt file with the system's turn, used if the card's prompt file has no such turn."""
    query: str = "{text}"
    """How a query is shown. It must name {text}."""
    expanded: str = ""
    """How a query is shown with the text that was generated for it: {query} and {generated}. By default as one text."""
    passage: str = "[{number}] {text}"
    """How a passage is shown. It may name {number}, {text} and {score}."""
    scored: str = ""
    """How a passage is shown with the score of the previous stage (scores=show). By default as `passage` says."""
    scored_head: str = ""
    """A text before passages that are shown with scores."""
    separator: str = "\n"
    """What is between two passages."""
    labels: Literal["numbers", "letters"] = "numbers"
    """What {number} is: 1, 2, 3 or A, B, C."""
    brackets: Literal["keep", "round"] = "keep"
    """round: [7] inside a query or a passage becomes (7), so that it does not look like a label."""
    one_line: bool = True
    """True if line breaks and runs of blanks in a passage become one blank."""
    passage_limit: Limit | None = None
    """How much of a passage is shown at most."""
    passage_limits: dict[str, Limit] = {}
    """Other limits for some kinds of task, such as similar-case."""
    adjustable: bool = False
    """True if the setting `words` can change the limit of a passage."""
    query_limit: Limit | None = None
    """How much of a query is shown at most."""
    tag: str = ""
    """The tag that encloses the answer, such as answer for <answer>…</answer>. Without the tag, all text counts."""
    answer: Answer
    """How an answer is read. order: [2] > [1]. free-order: an order in any usual notation. ties: [2] > [1] = [3].
    first-token: passages by the probability of their labels as the first token. label: the label of the best passage.
    scores: JSON with a score for each passage. score: one score. free-score: one score in any usual notation.
    score-probability: one score times its probability. true-false: the probability of true against false.
    """
    pattern: str = ""
    """The regular expression of a number or a score in an answer. Its first group counts."""
    highest: float = Field(10.0, gt=0)
    """The highest score of the scale."""
    unreadable: float | None = None
    """The score of a passage whose answer cannot be read. Without it, the passage keeps its place."""
    last_window: Literal["whole", "smaller", "none"] = "whole"
    """The window at the top where windows do not divide evenly: a whole one, a smaller one, or none."""
    stop: tuple[str, ...] = ()
    """Texts that end an answer."""
    published: str = ""
    """Where the authors publish their wording. A prompt file of the same name replaces ours."""
    parameters: str = ""
    """The size of the model, such as 7B."""
    licence: str = ""
    """The licence of the weights."""
    notes: tuple[str, ...] = ()
    """Other facts about the reranker, a sentence each."""

    @model_validator(mode="before")
    @classmethod
    def _named_llm(cls, content: Any) -> Any:
        return with_named_llm(content)

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"it is not a regular expression: {error}") from None
        if pattern and not re.compile(pattern).groups:
            raise ValueError(f"it needs a group around the number, as in {NUMBERED}")
        return pattern

    @field_validator("passage", "scored", "query", "expanded")
    @classmethod
    def _shows_text(cls, layout: str, info: ValidationInfo) -> str:
        needed, *others = _LAYOUTS[str(info.field_name)]
        if (layout or info.field_name in ("passage", "query")) and layout.count(f"{{{needed}}}") != 1:
            raise ValueError(f"it must hold {{{needed}}} once")
        for field in re.findall(r"\{([A-Za-z_]\w*)\}", layout):
            if field != needed and field not in others:
                known = " or ".join(f"{{{each}}}" for each in (needed, *others))
                raise ValueError(f"{{{field}}} is not a field of {info.field_name}: {known}")
        return layout

    @model_validator(mode="after")
    def _answer_fits_form(self) -> LLMRerankerCard:
        forms = BUILT_IN_STAGES["rerank"].forms
        if self.form in forms:
            readable: tuple[Answer, ...] = resolve_name(forms[self.form]).answers
            if self.answer not in readable:
                raise ValueError(f"form {self.form} reads answers as {' or '.join(readable)}, not {self.answer}")
        return self

    @property
    def is_trained(self) -> bool:
        """True if a model was trained for this reranker, with one exact prompt."""
        return self.llm is not None

    @property
    def template(self) -> str:
        """The name of the prompt file, without a kind of task."""
        return self.prompt or self.name

    def limit(self, kind: str, words: int = 0) -> Limit | None:
        """Return how much of a passage is shown for a kind of task. `words` replaces the length."""
        limit = self.passage_limits.get(kind, self.passage_limit)
        return limit.model_copy(update={"most": words}) if limit and words else limit

    @property
    def calls_per_question(self) -> int:
        """Number of calls for a question: two if the model first writes a thought and then one token."""
        return 2 if self.answer == "true-false" else 1

    @property
    def uses_probabilities(self) -> bool:
        """True if the log-probabilities of tokens are needed."""
        return self.answer in ("first-token", "score-probability", "true-false")

    def key(self) -> dict[str, Any]:
        """Return the fields that an order depends on besides the stage's settings and the LLM."""
        apart = ("name", "variant", "llm", "settings", "published", "parameters", "licence", "notes")
        return changed_values(self, but=apart)


PASSAGE_FIELDS = ("text", "number", "score")
"""The fields of the layout of a passage."""

_LAYOUTS = {
    "passage": PASSAGE_FIELDS,
    "scored": PASSAGE_FIELDS,
    "query": ("text",),
    "expanded": ("query", "generated"),
}
"""Layout -> the field that it must hold, and the fields that it may hold."""

LLM_RERANKERS = Catalogue("llm-rerankers", LLMRerankerCard, "LLM reranker")
"""Every LLM reranker card by name; those with variants also as NAME:VARIANT."""
