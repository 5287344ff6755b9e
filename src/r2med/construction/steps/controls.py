"""Plant controls: candidates whose right answer is known. They test the judge."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar

from pydantic import Field

from r2med.assessment.panels.control_texts import ordered
from r2med.construction.items import Candidate, PageChunk, Rejected, SourceQuestion, Stream, StreamItem
from r2med.construction.labels import NEAR_MISS, ORDERS, RANDOM, STUFFED, WRITTEN
from r2med.construction.pipeline import drawn
from r2med.construction.step import Step, StepWork, Streams
from r2med.construction.steps.asking import AskingStep
from r2med.construction.steps.full_candidates import chunks_of
from r2med.construction.steps.judge_controls import is_cited
from r2med.data.text_copies import repeats
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import digest
from r2med.foundation.text.synonyms import Synonyms
from r2med.models.ask.answers import LLMAnswer, Text

POOL_CHUNKS = 5000
"""Size of the corpus sample from which unrelated texts are drawn. It fits in memory."""
SAMPLE_DRAWS = 200
"""Number of draws from which the text of the nearest length, or the most similar question, is chosen."""
MIXED_WORDS = 8
"""Number of words that a stuffed control takes in turn from the text and from the query."""


class NearMiss(LLMAnswer):
    """A passage about a different condition that looks like the answer."""

    condition: Text
    passage: Text


class PlantControls(AskingStep[SourceQuestion], kind="build", takes="llm"):
    """Plant candidates that test the judge: near misses, stuffed and random texts, and orders to the judge.

    None of them is evidence. An LLM writes near misses and, if the source cites nothing, a passage that is evidence.
    """

    template: ClassVar[str] = "near-miss"
    answer: ClassVar[type[LLMAnswer]] = NearMiss
    reads: ClassVar[tuple[Stream, ...]] = ("questions", "chunks", "candidates")
    writes: ClassVar[Stream] = "candidates"
    adds: ClassVar[bool] = True
    version: ClassVar[int] = 2

    name: str = "plant-controls"
    each: int = Field(
        1, ge=1, le=20, description="Controls of each kind per question. An LLM always writes one of its kinds."
    )
    seed: int = Field(0, ge=0, description="Seed of the random draws.")

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the controls depend on. If no LLM is named, near misses come from other questions."""
        if not self.llm:
            return Step.key(self, streams, runtime)
        return {**super().key(streams, runtime), "evidence": digest(self._evidence.prompt(streams).text)}

    @property
    def _evidence(self) -> WriteEvidence:
        return WriteEvidence(llm=self.llm, prompts=self.prompts, tries=self.tries)

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
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
            yield from islice(sources.with_orders(question, chance), self.each)
        if self.llm:
            yield from super().run(streams, work)
            near_miss, author = work.facts["prompt"], self.card(work.runtime).model
            for made in self._evidence.run(streams, work):
                yield made.model_copy(update={"author": author}) if isinstance(made, Candidate) else made
            work.facts["prompt"] = f"{near_miss}\n\n{work.facts['prompt']}"

    def calls(self, streams: Streams, runtime: Runtime) -> Needs | None:
        """Return what near misses and evidence would cost. Without an LLM, nothing is asked."""
        if not self.llm:
            return Needs()
        near, evidence = super().calls(streams, runtime), self._evidence.calls(streams, runtime)
        return near + evidence if near and evidence else None

    def asked(self, streams: Streams) -> Iterator[SourceQuestion]:
        """Yield the questions for which an LLM writes a near miss."""
        with_candidates = {candidate.question for candidate in streams.candidates()}
        return (question for question in streams.questions() if question.id in with_candidates)

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the question, its answer and the approximate length of a passage."""
        return {"text": item.text, "answer": item.answer, "length": "120"}

    def read(self, item: SourceQuestion, answer: NearMiss) -> Candidate:
        """Return the near miss. Raises ValueError if it names the answer."""
        if any(_names_answer(text, item) for text in (answer.condition, answer.passage)):
            raise ValueError("it names the answer")
        return _control(item, "near-miss", NEAR_MISS, answer.passage)


class EvidencePassage(LLMAnswer):
    """A passage that states the evidence for the answer."""

    passage: Text


class WriteEvidence(AskingStep[SourceQuestion], kind="build", takes="llm"):
    """Write a passage that is evidence, for each question whose source cites nothing. A part of plant-controls."""

    template: ClassVar[str] = "state-evidence"
    answer: ClassVar[type[LLMAnswer]] = EvidencePassage
    writes: ClassVar[Stream] = "candidates"

    name: str = "plant-controls"

    def asked(self, streams: Streams) -> Iterator[SourceQuestion]:
        """Yield the questions with an answer and candidates, none of which the source cites."""
        cited = {each.question: False for each in streams.candidates()}
        cited |= {each.question: True for each in streams.candidates() if is_cited(each)}
        return (question for question in streams.questions() if question.answer and cited.get(question.id) is False)

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the question, its answer, the reasoning and the approximate length of a passage."""
        reasoning = item.reasoning or "(not given)"
        return {"text": item.text, "answer": item.answer, "reasoning": reasoning, "length": "120"}

    def read(self, item: SourceQuestion, answer: EvidencePassage) -> Candidate:
        """Return the passage. Raises ValueError if it does not name the answer."""
        if not _names_answer(answer.passage, item):
            raise ValueError("it does not name the answer")
        return _control(item, "evidence", WRITTEN, answer.passage)


@dataclass(frozen=True)
class _Sources:
    """The questions, candidates and chunks from which controls are drawn."""

    asked: Mapping[str, SourceQuestion]
    candidates: Mapping[str, Sequence[Candidate]]
    chunks: Mapping[str, PageChunk]
    pool: Sequence[PageChunk]

    @classmethod
    def read(cls, streams: Streams, seed: int) -> _Sources:
        candidates = defaultdict[str, list[Candidate]](list)
        for candidate in streams.candidates():
            if not candidate.control:
                candidates[candidate.question].append(candidate)
        asked = {question.id: question for question in streams.questions() if question.id in candidates}
        ids = {candidate.chunk for each in candidates.values() for candidate in each}
        return cls(asked, candidates, chunks_of(streams, ids), drawn(streams.chunks(), POOL_CHUNKS, seed))

    def unrelated(self, question: SourceQuestion, chance: random.Random) -> Iterator[Candidate]:
        """Yield random chunks, first those that are about as long as a candidate."""
        lengths = [len(self.chunks[each.chunk].text) for each in self._real(question)]
        target = chance.choice(lengths or [600])
        for chunk in sorted(self._strangers(question, chance), key=lambda chunk: abs(len(chunk.text) - target)):
            yield Candidate(question=question.id, chunk=chunk.id, control=RANDOM)

    def stuffed(self, question: SourceQuestion, chance: random.Random) -> Iterator[Candidate]:
        """Yield unrelated texts with the query's words mixed in, in random order."""
        for number, chunk in enumerate(self._strangers(question, chance), 1):
            text, query = chunk.text.split(), question.text.split()
            chance.shuffle(query)
            size = MIXED_WORDS
            starts = range(0, max(len(text), len(query)), size)
            mixed = [word for at in starts for word in (*text[at : at + size], *query[at : at + size])]
            yield _control(question, f"stuffed-{number}", STUFFED, " ".join(mixed))

    def with_orders(self, question: SourceQuestion, chance: random.Random) -> Iterator[Candidate]:
        """Yield unrelated texts that tell the judge what to answer, each in another form."""
        for number, chunk in enumerate(self._strangers(question, chance), 1):
            yield _control(question, f"orders-{number}", ORDERS, ordered(chunk.text, chance))

    def near_misses(self, question: SourceQuestion, chance: random.Random) -> Iterator[Candidate]:
        """Yield the best candidates of similar questions that have a different answer."""
        others = chance.sample(list(self.asked.values()), min(len(self.asked), SAMPLE_DRAWS))
        own = self._possible_evidence(question)

        def likeness(other: SourceQuestion) -> tuple[bool, float]:
            first, second = set(question.text.lower().split()), set(other.text.lower().split())
            shared = len(first & second) / max(1, len(first | second))
            return other.body_system == question.body_system != "", shared

        for other in sorted(others, key=likeness, reverse=True):
            if not question.answer or _may_mean_the_same(question, other):
                continue
            for candidate in sorted(self._real(other), key=_standing)[:1]:
                text = self.chunks[candidate.chunk].text
                if candidate.chunk not in own and not self._is_evidence(text, question):
                    yield Candidate(question=question.id, chunk=candidate.chunk, control=NEAR_MISS)

    def _possible_evidence(self, question: SourceQuestion) -> set[str]:
        """Return the candidates of a question, and of all questions whose answers are in the same group."""
        group = question.answer_group
        same = self._by_group.get(group, ()) if group else ()
        return {candidate.chunk for each in (question, *same) for candidate in self.candidates[each.id]}

    @cached_property
    def _by_group(self) -> Mapping[str, Sequence[SourceQuestion]]:
        groups = defaultdict[str, list[SourceQuestion]](list)
        for question in self.asked.values():
            groups[question.answer_group].append(question)
        return groups

    def _real(self, question: SourceQuestion) -> list[Candidate]:
        return [candidate for candidate in self.candidates[question.id] if candidate.chunk in self.chunks]

    def _strangers(self, question: SourceQuestion, chance: random.Random) -> list[PageChunk]:
        """Return random chunks that are no candidates of a question and do not name its answer."""
        own = self._possible_evidence(question)
        strangers = chance.sample(self.pool, min(len(self.pool), SAMPLE_DRAWS))
        return [chunk for chunk in strangers if chunk.id not in own and not self._is_evidence(chunk.text, question)]

    def _is_evidence(self, text: str, question: SourceQuestion) -> bool:
        """Return True if a text names the answer of a question, or is a copy of a passage that its source cites."""
        cited = (self.chunks[each.chunk].text for each in self._real(question) if is_cited(each))
        return _names_answer(text, question) or any(repeats(text, other) for other in cited)


def _control(question: SourceQuestion, name: str, control: str, text: str) -> Candidate:
    return Candidate(question=question.id, chunk=f"control-{name}", control=control, text=text)


def _standing(candidate: Candidate) -> tuple[bool, int]:
    """Return a sort key that is smallest for the candidate that is most likely relevant to its question."""
    return not is_cited(candidate), min((found.rank for found in candidate.found), default=1 << 30)


def _may_mean_the_same(question: SourceQuestion, other: SourceQuestion) -> bool:
    if question.answer_group and question.answer_group == other.answer_group:
        return True
    return _names_answer(other.answer, question) or _names_answer(question.answer, other)


def _names_answer(text: str, question: SourceQuestion) -> bool:
    """Return True if a text contains the answer of a question or one of its other names."""
    if _names(text, question.answer):
        return True
    return bool(question.other_names) and bool(_other_names(question.other_names).concepts(text))


@lru_cache(maxsize=256)
def _other_names(names: tuple[str, ...]) -> Synonyms:
    return Synonyms((names[0], name) for name in names)


def _names(text: str, answer: str) -> bool:
    return bool(answer) and answer.casefold() in text.casefold()
