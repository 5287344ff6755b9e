"""What a prompt shows: the query and numbered passages, inside marks that nothing in them can imitate, and so that
they fit the LLM.

An answer names passages as `[3]`, which documents may well contain; the marks therefore look different. Where a prompt
is too long, all of its passages are cut to the same length, and the query never.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from r2med.core.errors import UserError
from r2med.llm.chat import Failure
from r2med.llm.llm_cards import LLMCard
from r2med.prompts.fitting import Fitted, Fitter, first_words
from r2med.prompts.templates import Template, open_templates
from r2med.rerank.reranking import query_text
from r2med.retrieve.retriever import SearchQuery

CHARACTERS = 12
"""Characters that count as one word at most: a DNA sequence or a page of Chinese is a single word to `split`."""

LEAST = 20
"""Words of a passage below which it cannot be judged."""

EMPTY = "(no text)"

# What would open or close one of our marks, and what some servers read as a special token of the model's.
_MARK = re.compile(r"<(?=\s*/?\s*(?:passage|query|notes)\b|\|)", re.IGNORECASE)
_HINTED = "The search score in a mark says how a first search rated the passage, from 0 to 1: a hint and no judgement."
_NOTED = "What a language model wrote about it beforehand; it may help, and it may be wrong:"


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
class JudgePrompts:
    """The template of one method for one kind of task, with the system prompt that goes before it."""

    system: str
    template: Template
    hash: str

    def fitted(self, question: Question, card: LLMCard, words: int) -> Fitted | Failure:
        """Return the prompt of a question; a failure where passages would be cut below what can be judged."""
        least = min(LEAST, words)
        smallest = f"a query with {least} words of each of {len(question.passages)} passages"
        return Fitter(card, self.system).fit(lambda size: self._rendered(question, size), least, words, smallest)

    def _rendered(self, question: Question, words: int) -> str:
        """Return the user's message with so many words of each passage."""
        texts = [shortened(text, words) for text in question.passages]
        return self.template.render(
            {"query": question.query, "passages": passages_block(texts, question.hints), "count": str(len(texts))}
        )


def open_prompts(
    method: str, kind: str, folder: Traversable | None = None, fields: Sequence[str] | None = None
) -> JudgePrompts:
    """Return the prompts of a method; files of a set go before those of plugins and ours.

    `fields` are those its template may have, by default what the stage of this name declares. Raises UserError if a
    template is missing, wrong, or shows no passages.
    """
    templates = open_templates(folder, [kind])
    system, template = templates.template("system"), templates.template(method, kind, fields)
    if not template.names("passages"):
        raise UserError(f"{template.file}: it does not name {{passages}}: the model would have nothing to judge")
    return JudgePrompts(system.text, template, templates.hash)


def inert(text: str) -> str:
    """Return a text that can neither close its mark nor open another."""
    return _MARK.sub("‹", text)


def shortened(text: str, words: int) -> str:
    """Return the first words of a text, all on one line."""
    line = first_words(" ".join(text.split()), words)
    limit = words * CHARACTERS
    if len(line) <= limit:
        return line
    start, space, _ = line[:limit].rpartition(" ")
    return start if space else line[:limit]


def query_block(asked: SearchQuery, which: str) -> str:
    """Return the query within its marks; with `expanded`, what was generated for it stands apart as what it is."""
    block = f"<query>\n{inert(asked.query.text).strip()}\n</query>"
    if query_text(asked, which) == asked.query.text:
        return block
    written = "\n\n".join(inert(text).strip() for text in asked.generated)
    return f"{block}\n\n{_NOTED}\n<notes>\n{written}\n</notes>"


def passages_block(texts: Sequence[str], hints: Sequence[float] = ()) -> str:
    """Return passages numbered from 1; `hints` are shown beside the numbers."""
    shown = [f", search score {hint:.2f}" for hint in hints] or [""] * len(texts)
    blocks = [
        f"<passage {number}{hint}>\n{inert(text) or EMPTY}\n</passage {number}>"
        for number, (text, hint) in enumerate(zip(texts, shown, strict=True), 1)
    ]
    return "\n\n".join([_HINTED, *blocks] if hints else blocks)
