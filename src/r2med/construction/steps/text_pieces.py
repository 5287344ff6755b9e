"""Cut a long text into pieces that an LLM or a library can read, between lines or words."""

from __future__ import annotations

from collections.abc import Iterator


def piece_spans(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of pieces of at most `most` characters. A piece ends after a line or a word if it can."""
    start = 0
    while start < len(text):
        end = min(start + most, len(text))
        if end < len(text):
            half = start + most // 2
            end = next((at + 1 for mark in "\n. " if (at := text.rfind(mark, half, end)) >= 0), end)
        yield start, end
        start = end
