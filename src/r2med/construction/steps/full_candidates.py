"""Candidates together with their question and text, as judges and reviewers see them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from r2med.construction.items import Candidate, PageChunk, SourceQuestion
from r2med.construction.step import Streams


@dataclass(frozen=True)
class FullCandidate:
    """A candidate with everything that is needed to judge it."""

    question: SourceQuestion
    candidate: Candidate
    chunk: PageChunk

    @property
    def text(self) -> str:
        """The text to judge."""
        return self.candidate.text or self.chunk.text


def full_candidates(streams: Streams) -> Iterator[FullCandidate]:
    """Yield the candidates in order, without those whose question was rejected by a later step."""
    questions = {question.id: question for question in streams.questions()}
    chunks = chunks_of(streams, {candidate.chunk for candidate in streams.candidates()})
    for candidate in streams.candidates():
        chunk = chunks.get(candidate.chunk) or PageChunk(id=candidate.chunk, text=candidate.text, page="")
        if candidate.question in questions and (candidate.text or chunk.text):
            yield FullCandidate(questions[candidate.question], candidate, chunk)


def chunks_of(streams: Streams, ids: Container[str]) -> dict[str, PageChunk]:
    """Return the chunks with these ids. A corpus may not fit in memory, but the judged chunks do."""
    return {chunk.id: chunk for chunk in streams.chunks() if chunk.id in ids}
