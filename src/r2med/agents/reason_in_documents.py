"""Reason-in-documents: before results enter the reasoning of Search-o1, the model reads them in a call apart.

It sees its earlier reasoning in short, what it searched for, and the documents, and writes down what helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2med.agents.conversation import WORDS, Completion, Hit
from r2med.agents.sources import title_and_text
from r2med.llm.costs import approximate_tokens
from r2med.prompts.fitting import first_words, fit
from r2med.prompts.templates import Template

BEGIN_QUERY, END_QUERY = "<|begin_search_query|>", "<|end_search_query|>"
BEGIN_RESULT, END_RESULT = "<|begin_search_result|>", "<|end_search_result|>"

MARK = "**Final Information**"
NOTHING = "No helpful information found."

FIELDS = ("reasoning", "search", "passages")
"""What the template may name."""

ALL = 4
LAST = 3
"""So many steps are shown whole; of more, the first, the last three, and those with a query or a result. In the
original the numbers are one higher, but there the reasoning ends in an empty step, which counts."""


@dataclass(frozen=True)
class Reader:
    """How documents are put before the model."""

    template: Template
    room: int
    """Tokens that the prompt may have."""

    def prompt(self, reasoning: str, search: str, documents: Sequence[Hit]) -> tuple[str, int]:
        """Return the prompt, and how many documents are in it; where not all fit, the worst are left out."""
        blocks = list(entries(documents))

        def render(count: int) -> str:
            passages = "\n\n".join(blocks[:count])
            return self.template.render({"reasoning": shortened(reasoning), "search": search, "passages": passages})

        fitted = fit(render, approximate_tokens, self.room, 0, len(blocks))
        return fitted or (render(0), 0)


def entries(documents: Sequence[Hit]) -> Iterator[str]:
    """Yield each document as it stands in the prompt."""
    for number, hit in enumerate(documents, 1):
        title, text = title_and_text(hit.contents)
        yield f"Document {number}{f' ({title})' if title else ''}: {first_words(text, WORDS)}"


def shortened(reasoning: str) -> str:
    """Return reasoning in numbered steps, one a line of it; a long one without most of its middle."""
    lines = [line.strip() for line in reasoning.splitlines() if line.strip()]
    steps = [f"Step {number}: {line}" for number, line in enumerate(lines, 1)]
    if len(steps) <= ALL:
        return "\n\n".join(steps)
    kept: list[str] = []
    for index, step in enumerate(steps):
        if index == 0 or index >= len(steps) - LAST or BEGIN_QUERY in step or BEGIN_RESULT in step:
            kept.append(step)
        elif kept[-1] != "...":
            kept.append("...")
    return "\n\n".join(kept)


def final_information(completion: Completion) -> str:
    """Return what the model found helpful; its thoughts about the documents are none of it."""
    text = completion.text.rpartition("</think>")[2]
    if MARK not in text or "<think>" in text or completion.finish_reason != "stop":
        return NOTHING
    # One line, so that it stays one step of the reasoning.
    return " ".join(text.rpartition(MARK)[2].strip().strip("`").split()) or NOTHING
