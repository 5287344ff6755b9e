"""Planted controls: candidates that cannot be evidence. How often a judge calls one positive is how it overrates."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from pydantic import Field

from r2med.ask.answers import LLMAnswer, Text
from r2med.construction.items import Candidate, Chunk, Item, Question, Rejected, Stream
from r2med.construction.pipeline import drawn
from r2med.construction.step import Step, Streams, Work
from r2med.construction.steps.asking import Asking
from r2med.construction.steps.cases import chunks_of
from r2med.runtime.runtime import Runtime

NEAR_MISS, STUFFED, RANDOM = "near miss", "stuffed", "random"
"""A condition that is close but wrong; the query's words in an unrelated text; an unrelated text of the same length."""

POOL = 5000
"""Chunks that unrelated texts are drawn from: a sample of the corpus that fits the memory."""
LOOKS = 200
"""Draws among which the text of the nearest length, or the question of the most shared words, is chosen."""
BLOCK = 8
"""Words of the text and of the query in turn."""


class NearMiss(LLMAnswer):
    """A passage about another condition that looks like the answer."""

    condition: Text
    passage: Text


class PlantControls(Asking[Question], kind="build", needs="llm"):
    """Plant candidates that cannot be evidence among the others: a near miss, the query's words stuffed, random."""

    template: ClassVar[str] = "near-miss"
    answer: ClassVar[type[LLMAnswer]] = NearMiss
    reads: ClassVar[tuple[Stream, ...]] = ("questions", "chunks", "candidates")
    writes: ClassVar[Stream] = "candidates"
    adds: ClassVar[bool] = True

    name: str = "plant-controls"
    each: int = Field(1, ge=1, le=20, description="controls of each kind for a question; an LLM writes one near miss")
    seed: int = Field(0, ge=0, description="of the draws")

    def describe(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return all they depend on; without the name of an LLM, near misses come from other questions."""
        return super().describe(streams, runtime) if self.llm else Step.describe(self, streams, runtime)

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Yield the controls of each question that has candidates."""
        sources = _Sources.read(streams, self.seed)
        for question in sources.asked.values():
            chance = random.Random(f"{self.seed} {question.id}")
            near = [] if self.llm else list(islice(sources.near_misses(question, chance), self.each))
            taken = {candidate.chunk for candidate in near}
            unrelated = (each for each in sources.unrelated(question, chance) if each.chunk not in taken)
            yield from near
            yield from islice(unrelated, self.each)
            yield from islice(sources.stuffed(question, chance), self.each)
        if self.llm:
            yield from super().run(streams, work)

    def asked(self, streams: Streams) -> Iterator[Question]:
        """Yield the questions that an LLM writes a near miss for."""
        with_candidates = {candidate.question for candidate in streams.candidates()}
        return (question for question in streams.questions() if question.id in with_candidates)

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return the question, its answer, and about how long a passage is."""
        return {"text": item.text, "answer": item.answer, "length": "120"}

    def read(self, item: Question, answer: NearMiss) -> Candidate:
        """Return the near miss. Raises ValueError if it names the answer."""
        if any(_names(text, item.answer) for text in (answer.condition, answer.passage)):
            raise ValueError("it names the answer")
        return _control(item, "near-miss", NEAR_MISS, answer.passage)

    def unread(self, item: Question) -> Candidate:
        """Return what stands for a near miss in a rehearsal."""
        return _control(item, "near-miss", NEAR_MISS, item.text)


@dataclass(frozen=True)
class _Sources:
    """What controls are drawn from."""

    asked: Mapping[str, Question]
    candidates: Mapping[str, Sequence[Candidate]]
    chunks: Mapping[str, Chunk]
    pool: Sequence[Chunk]

    @classmethod
    def read(cls, streams: Streams, seed: int) -> _Sources:
        candidates = defaultdict[str, list[Candidate]](list)
        for candidate in streams.candidates():
            if not candidate.control:
                candidates[candidate.question].append(candidate)
        asked = {question.id: question for question in streams.questions() if question.id in candidates}
        ids = {candidate.chunk for each in candidates.values() for candidate in each}
        return cls(asked, candidates, chunks_of(streams, ids), drawn(streams.chunks(), POOL, seed))

    def unrelated(self, question: Question, chance: random.Random) -> Iterator[Candidate]:
        """Yield chunks at random, those about as long as a candidate first."""
        lengths = [len(self.chunks[each.chunk].text) for each in self._real(question)]
        target = chance.choice(lengths or [600])
        for chunk in sorted(self._strangers(question, chance), key=lambda chunk: abs(len(chunk.text) - target)):
            yield Candidate(question=question.id, chunk=chunk.id, control=RANDOM)

    def stuffed(self, question: Question, chance: random.Random) -> Iterator[Candidate]:
        """Yield unrelated texts with the words of the query in them, in no order."""
        for number, chunk in enumerate(self._strangers(question, chance), 1):
            text, query = chunk.text.split(), question.text.split()
            chance.shuffle(query)
            turns = range(0, max(len(text), len(query)), BLOCK)
            mixed = [word for at in turns for word in (*text[at : at + BLOCK], *query[at : at + BLOCK])]
            yield _control(question, f"stuffed-{number}", STUFFED, " ".join(mixed))

    def near_misses(self, question: Question, chance: random.Random) -> Iterator[Candidate]:
        """Yield the first candidates of similar questions that have another answer."""
        others = chance.sample(list(self.asked.values()), min(len(self.asked), LOOKS))
        own = {candidate.chunk for candidate in self.candidates[question.id]}

        def likeness(other: Question) -> tuple[bool, float]:
            first, second = set(question.text.lower().split()), set(other.text.lower().split())
            shared = len(first & second) / max(1, len(first | second))
            return other.body_system == question.body_system != "", shared

        for other in sorted(others, key=likeness, reverse=True):
            if not question.answer or _names(other.answer, question.answer) or _names(question.answer, other.answer):
                continue
            for candidate in sorted(self._real(other), key=_standing)[:1]:
                text = self.chunks[candidate.chunk].text
                if candidate.chunk not in own and not _names(text, question.answer):
                    yield Candidate(question=question.id, chunk=candidate.chunk, control=NEAR_MISS)

    def _real(self, question: Question) -> list[Candidate]:
        return [candidate for candidate in self.candidates[question.id] if candidate.chunk in self.chunks]

    def _strangers(self, question: Question, chance: random.Random) -> list[Chunk]:
        """Return chunks at random that nobody proposed for a question, and that do not name its answer."""
        own = {candidate.chunk for candidate in self.candidates[question.id]}
        strangers = chance.sample(self.pool, min(len(self.pool), LOOKS))
        return [chunk for chunk in strangers if chunk.id not in own and not _names(chunk.text, question.answer)]


def _control(question: Question, name: str, control: str, text: str) -> Candidate:
    return Candidate(question=question.id, chunk=f"control-{name}", control=control, text=text)


def _standing(candidate: Candidate) -> tuple[bool, int]:
    """Return what is smallest for the candidate that is likeliest a positive of its question."""
    from_source = any(found.member == "source" for found in candidate.found)
    return not from_source, min((found.rank for found in candidate.found), default=1 << 30)


def _names(text: str, answer: str) -> bool:
    return bool(answer) and answer.casefold() in text.casefold()
