"""Candidates with their question and their text: what judges and people are shown."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from r2med.construction.items import Candidate, Chunk, Question
from r2med.construction.step import Streams


@dataclass(frozen=True)
class Case:
    """A candidate, and all that is needed to judge it."""

    question: Question
    candidate: Candidate
    chunk: Chunk

    @property
    def text(self) -> str:
        """What is judged."""
        return self.candidate.text or self.chunk.text


def cases(streams: Streams) -> Iterator[Case]:
    """Yield every candidate of a question that is still there, in their order."""
    questions = {question.id: question for question in streams.questions()}
    chunks = chunks_of(streams, {candidate.chunk for candidate in streams.candidates()})
    for candidate in streams.candidates():
        chunk = chunks.get(candidate.chunk) or Chunk(id=candidate.chunk, text=candidate.text, page="")
        if candidate.question in questions and (candidate.text or chunk.text):
            yield Case(questions[candidate.question], candidate, chunk)


def chunks_of(streams: Streams, ids: Container[str]) -> dict[str, Chunk]:
    """Return some chunks by id: a corpus may be larger than the memory, what is judged is not."""
    return {chunk.id: chunk for chunk in streams.chunks() if chunk.id in ids}
