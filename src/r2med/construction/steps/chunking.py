"""Cut pages into chunks of whole sentences, up to a maximum size. Each chunk knows its position in the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pydantic import Field, model_validator

from r2med.construction.items import PageChunk, Rejected, SourcePage
from r2med.construction.step import Step, StepWork, Streams
from r2med.foundation.text.sentences import sentence_spans

_WITHOUT_SPACES = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7af"
"""Letters of Chinese, Japanese and Korean."""
_TOKEN = re.compile(rf"[{_WITHOUT_SPACES}]{{1,2}}|[^\W{_WITHOUT_SPACES}]{{1,6}}|[^\w\s]")
"""An estimate of a model's tokens in medical English: every six letters of a word, or one sign, are a token. BERT's
tokenizer gives 1.5 % more tokens for the demo's texts. Two Chinese letters are about one token of a multilingual
model."""

_TAIL_FRACTION = 4
"""A last chunk smaller than size / _TAIL_FRACTION joins the chunk before it, because it would mean little alone."""

Span = tuple[int, int]


def count_tokens(text: str) -> int:
    """Return the approximate number of tokens in a text."""
    return len(_TOKEN.findall(text))


def chunk_spans(text: str, tokens: int = 128, characters: int = 0) -> list[Span]:
    """Return the start and end of each chunk of a text.

    Sentences are joined up to about `tokens` tokens, or to at most `characters` characters if that is not 0. A longer
    sentence is cut between words, and a longer word is cut inside.
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
    if not characters and len(grouped) > 1 and held < most / _TAIL_FRACTION:
        _, end = grouped.pop()
        grouped[-1] = (grouped[-1][0], end)
    return grouped


def _pieces(text: str, size: Callable[[str], int], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, size) of each sentence, or of its parts if it is longer than a chunk."""
    for start, end in sentence_spans(text):
        if (held := size(text[start:end])) <= most:
            yield start, end, held
        else:
            yield from _parts(text, start, end, size, most)


def _parts(text: str, start: int, end: int, size: Callable[[str], int], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield (start, end, size) of the parts of a long sentence, each as large as allowed."""
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
    version = 2

    name: str = "chunk"
    tokens: int = Field(128, ge=8, le=100_000, description="Approximate maximum number of tokens in a chunk.")
    characters: int = Field(
        0, ge=0, le=1_000_000, description="Maximum number of characters in a chunk, instead of tokens."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_size(cls, values: Any) -> Any:
        if values.get("characters") and values.get("tokens"):
            raise ValueError("chunk takes tokens or characters, not both")
        return values

    def run(self, streams: Streams, work: StepWork) -> Iterator[PageChunk | Rejected]:
        """Yield the chunks of each page. The text of a chunk is `page.text[start:end]`."""
        for page in streams.pages():
            spans = chunk_spans(page.text, self.tokens, self.characters)
            if not spans:
                yield Rejected.of(page, "no text")
            for number, (start, end) in enumerate(spans, 1):
                yield _chunk(page, number, start, end)


def _chunk(page: SourcePage, number: int, start: int, end: int) -> PageChunk:
    return PageChunk(
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
