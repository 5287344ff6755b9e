"""How queries and documents stand in a prompt: inside marks that nothing in them can imitate, one line to a document.

An answer names passages as `[3]`, which documents may well contain; the marks therefore look different.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from r2med.prompts.fitting import first_words
from r2med.rerank.order import query_text
from r2med.retrieve.retriever import SearchQuery

CHARACTERS = 12
"""Characters that count as one word at most: a DNA sequence or a page of Chinese is a single word to `split`."""

EMPTY = "(no text)"

# What would open or close one of our marks, and what some servers read as a special token of the model's.
_MARK = re.compile(r"<(?=\s*/?\s*(?:passage|query|notes)\b|\|)", re.IGNORECASE)
_HINTED = "The search score in a mark says how a first search rated the passage, from 0 to 1: a hint and no judgement."
_NOTED = "What a language model wrote about it beforehand; it may help, and it may be wrong:"


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
