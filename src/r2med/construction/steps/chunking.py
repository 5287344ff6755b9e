"""Cut pages into chunks: whole sentences, regrouped up to a size, each with the place where it stands in its page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import Field, model_validator

from r2med.construction.items import Chunk, Rejected, SourcePage
from r2med.construction.step import Step, Streams, Work
from r2med.text.sentences import sentence_spans

_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")
"""About what a model's tokenizer makes of medical English: a word is one token for each six letters begun, a sign is
one. BERT's tokenizer makes 1.5 % more of the demo's texts."""

_TAIL = 4
"""A last chunk of less than this part of the size joins the one before it: alone it would say nothing."""

Span = tuple[int, int]


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return len(_TOKEN.findall(text))


def chunk_spans(text: str, tokens: int = 128, characters: int = 0) -> list[Span]:
    """Return where chunks start and end: sentences joined up to about so many tokens, or so many characters at most.

    A sentence that is longer by itself is cut between words, and a word that is longer within.
    """
    size, most = (len, characters) if characters else (count_tokens, tokens)
    grouped: list[Span] = []
    held = 0
    for start, end, more in _pieces(text, size, most):
        gap = start - grouped[-1][1] if characters and grouped else 0
        if grouped and held + gap + more <= most:
            grouped[-1] = (grouped[-1][0], end)
            held += gap + more
        else:
            grouped.append((start, end))
            held = more
    if not characters and len(grouped) > 1 and held < most / _TAIL:
        _, end = grouped.pop()
        grouped[-1] = (grouped[-1][0], end)
    return grouped


def _pieces(text: str, size: Callable[[str], int], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, size) of sentences, and of the parts of those that are longer than a chunk."""
    for start, end in sentence_spans(text):
        if (held := size(text[start:end])) <= most:
            yield start, end, held
        else:
            yield from _parts(text, start, end, size, most)


def _parts(text: str, start: int, end: int, size: Callable[[str], int], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of a sentence, each as large as may be."""
    first, held = start, 0
    for word in re.compile(rf"\S{{1,{min(80, most)}}}\s*").finditer(text, start, end):
        more = size(word[0].rstrip())
        if word.start() > first and held + more > most:
            yield first, first + len(text[first : word.start()].rstrip()), held
            first, held = word.start(), 0
        held += len(word[0]) if size is len else more
    yield first, end, held


class ChunkPages(Step, kind="build"):
    """Cut pages into chunks of whole sentences."""

    reads = ("pages",)
    writes = "chunks"

    name: str = "chunk"
    tokens: int = Field(128, ge=8, le=100_000, description="about how many tokens a chunk has at most")
    characters: int = Field(0, ge=0, le=1_000_000, description="characters a chunk has at most; it counts instead")

    @model_validator(mode="before")
    @classmethod
    def _one_size(cls, values: Any) -> Any:
        if values.get("characters") and values.get("tokens"):
            raise ValueError("chunk takes tokens or characters, not both")
        return values

    def run(self, streams: Streams, work: Work) -> Iterator[Chunk | Rejected]:
        """Yield the chunks of each page; `page.text[start:end]` is the text of a chunk."""
        for page in streams.pages():
            spans = chunk_spans(page.text, self.tokens, self.characters)
            if not spans:
                yield Rejected.of(page, "no text")
            for number, (start, end) in enumerate(spans, 1):
                yield _chunk(page, number, start, end)


def _chunk(page: SourcePage, number: int, start: int, end: int) -> Chunk:
    return Chunk(
        id=f"{page.id}-{number}",
        text=page.text[start:end],
        page=page.id,
        start=start,
        end=end,
        title=page.title,
        url=page.url,
        source=page.source,
        licence=page.licence,
    )
