"""Build the prompts of LLM rerankers.

A prompt shows the query and numbered passages. Each is inside tags that its text cannot imitate. An answer names
passages as `[3]`, which documents may also contain, so the tags have a different form. If a prompt is too long for the
LLM, all passages are cut to the same length. The query is never cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from r2med.foundation.core.errors import UserError
from r2med.models.llm.chat import Failure
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.fitting import Fitted, Fitter, first_words
from r2med.models.prompts.templates import Template, open_templates
from r2med.systems.rerank.reranking import query_text
from r2med.systems.retrieve.retriever import SearchQuery

CHARACTERS_PER_WORD = 12
"""Maximum number of characters that count as one word. A DNA sequence or a page of Chinese is one word to `split`."""

MIN_PASSAGE_WORDS = 20
"""Minimum number of words that are needed to judge a passage."""

EMPTY_PASSAGE = "(no text)"

# Text that would open or close one of our tags, or that some servers read as a special token of the model.
_TAG_START = re.compile(r"<(?=\s*/?\s*(?:passage|query|notes)\b|\|)", re.IGNORECASE)
_HINTS_NOTE = (
    "The search score in a mark says how a first search rated the passage, from 0 to 1: a hint and no judgement."
)
_EXPANSION_NOTE = "What a language model wrote about it beforehand; it may help, and it may be wrong:"


@dataclass(frozen=True)
class Question:
    """Passages to judge for a query in one call. It contains only text and scores, no other field of the query."""

    query: str
    """Text of the query inside its tags."""
    passages: tuple[str, ...]
    hints: tuple[float, ...] = ()
    """Scores of the previous stage, if the prompt shows them."""
    sample: int = 0
    thought: str | None = None
    """What the model wrote before, where it continues one text."""


@dataclass(frozen=True)
class JudgePrompts:
    """The template of one method for one kind of task, and its system prompt."""

    system: str
    template: Template
    digest: str

    def fitted(self, question: Question, card: LLMCard, words: int) -> Fitted | Failure:
        """Return the prompt of a question, or a failure if the passages would become too short to judge."""
        least = min(MIN_PASSAGE_WORDS, words)
        smallest = f"a query with {least} words of each of {len(question.passages)} passages"
        return Fitter(card, self.system).fit(lambda size: self._rendered(question, size), least, words, smallest)

    def query(self, asked: SearchQuery, which: str) -> str:
        """Return the query as the prompt shows it."""
        return query_block(asked, which)

    def shortened(self, text: str, size: int) -> str:
        """Return the part of a passage that is shown, in words."""
        return shortened(text, size)

    def _rendered(self, question: Question, words: int) -> str:
        """Return the user message with at most `words` words of each passage."""
        texts = [shortened(text, words) for text in question.passages]
        return self.template.render(
            {"query": question.query, "passages": passages_block(texts, question.hints), "count": str(len(texts))}
        )


def open_prompts(
    method: str, kind: str, folder: Traversable | None = None, fields: Sequence[str] | None = None
) -> JudgePrompts:
    """Return the prompts of a method. Files of a prompt set replace those of plugins and of r2med.

    `fields` are the fields that the template may contain. By default, the stage of this name declares them. Raises
    UserError if a template is missing, invalid or shows no passages.
    """
    templates = open_templates(folder, [kind])
    system, template = templates.template("system"), templates.template(method, kind, fields)
    if not template.names("passages"):
        raise UserError(
            f"{template.file}: the template does not contain {{passages}}, so the model would have no passages to judge"
        )
    return JudgePrompts(system.text, template, templates.digest)


def inert(text: str) -> str:
    """Return the text changed so that it cannot open or close a tag."""
    return _TAG_START.sub("‹", text)


def shortened(text: str, words: int) -> str:
    """Return the first words of a text on one line."""
    line = first_words(" ".join(text.split()), words)
    limit = words * CHARACTERS_PER_WORD
    if len(line) <= limit:
        return line
    start, space, _ = line[:limit].rpartition(" ")
    return start if space else line[:limit]


def query_block(asked: SearchQuery, which: str) -> str:
    """Return the query inside its tags. If `which` is "expanded", the generated text follows as separate notes."""
    block = f"<query>\n{inert(asked.query.text).strip()}\n</query>"
    if query_text(asked, which) == asked.query.text:
        return block
    written = "\n\n".join(inert(text).strip() for text in asked.generated)
    return f"{block}\n\n{_EXPANSION_NOTE}\n<notes>\n{written}\n</notes>"


def passages_block(texts: Sequence[str], hints: Sequence[float] = ()) -> str:
    """Return the passages numbered from 1. `hints` are shown beside the numbers."""
    shown = [f", search score {hint:.2f}" for hint in hints] or [""] * len(texts)
    blocks = [
        f"<passage {number}{hint}>\n{inert(text) or EMPTY_PASSAGE}\n</passage {number}>"
        for number, (text, hint) in enumerate(zip(texts, shown, strict=True), 1)
    ]
    return "\n\n".join([_HINTS_NOTE, *blocks] if hints else blocks)
