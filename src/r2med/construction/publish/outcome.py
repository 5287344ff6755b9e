"""What came of a build: the questions with their labels, what people and judges said, and where all comes from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from r2med.construction.items import Candidate, Question
from r2med.construction.pipeline import Build, Done, PlanFile
from r2med.construction.review.labels import Label, Word, labels
from r2med.construction.review.reviews import Review, Verdict, by_candidate, decision
from r2med.construction.step import Streams
from r2med.llm.llm_cards import LLMS, LLMCard, families
from r2med.measure.prediction_powered import Share, share

HIGHEST = 10
"""Of the two scores of a judge together."""


@dataclass(frozen=True)
class Asked:
    """An LLM that a step asked, and how."""

    step: str
    model: str
    prompt: str
    digest: str
    scripted: bool = False
    """Whether a person wrote its answers beforehand."""

    @property
    def families(self) -> tuple[str, ...]:
        """Whose kin it is."""
        known = (card for card in LLMS.values() if card.model == self.model)
        return families(next(known, LLMCard(name=self.model, model=self.model)))


@dataclass(frozen=True)
class Outcome:
    """All that a dataset and its datasheet tell. Texts of the corpus and rationales are read when they are written."""

    plan: PlanFile
    build: Build
    steps: Sequence[Done]
    streams: Streams
    questions: Sequence[Question]
    """Those with a positive: the queries."""
    left_over: Sequence[Question]
    """Those without."""
    labels: Sequence[Label]
    reviews: Sequence[Review]
    sources: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(questions or documents, source, licence) -> how many; documents are counted while they are written."""

    @classmethod
    def read(cls, build: Build, reviews: Sequence[Review] = ()) -> Outcome:
        """Read what the steps of a build left."""
        streams = build.streams()
        labelled = labels(streams.judgements(), reviews, build.plan.facts.labels)
        evident = {label.question for label in labelled if label.label == "positive"}
        questions = list(streams.questions())
        kept = [question for question in questions if question.id in evident]
        made = cls(
            build.plan.facts,
            build,
            [done for done in build.status() if done is not None],
            streams,
            kept,
            [question for question in questions if question.id not in evident],
            labelled,
            reviews,
        )
        for question in kept:
            made.sources["queries", origin(question.source), question.licence] += 1
        return made

    @cached_property
    def positives(self) -> Mapping[str, Sequence[str]]:
        """Query -> its positive documents."""
        chunks: dict[str, list[str]] = {question.id: [] for question in self.questions}
        for label in self.labels:
            if label.label == "positive" and label.question in chunks:
                chunks[label.question].append(label.chunk)
        return chunks

    @property
    def documents(self) -> int:
        """How many documents were written."""
        return sum(count for (kind, *_), count in self.sources.items() if kind == "documents")

    def candidates(self) -> Iterator[Candidate]:
        """Yield the candidates without those that were planted."""
        return (candidate for candidate in self.streams.candidates() if not candidate.control)

    @cached_property
    def asked(self) -> Sequence[Asked]:
        """The LLMs of all steps."""
        return [asked for done in self.steps for asked in _asked(done)]

    @property
    def judges(self) -> Sequence[Asked]:
        """The LLMs that judged."""
        judging = {done.step for done in self.steps if done.stream == "judgements"}
        return [asked for asked in self.asked if asked.step in judging]

    @cached_property
    def decisions(self) -> Mapping[tuple[str, str], Verdict]:
        """What people decided about candidates."""
        told = {pair: decision(reviews)[0] for pair, reviews in by_candidate(self.reviews).items()}
        return {pair: verdict for pair, verdict in told.items() if verdict is not None}

    def confusion(self) -> Counter[tuple[Word, Verdict]]:
        """Count what judges said against what people decided."""
        return Counter(
            (label.judged, self.decisions[label.question, label.chunk])
            for label in self.labels
            if label.judged and (label.question, label.chunk) in self.decisions
        )

    def accepted(self, judged: Word) -> Share | None:
        """Return the share of what judges called so that people would accept, from those that people saw."""
        rows = [label for label in self.labels if label.judged == judged]
        told = [self.decisions.get((label.question, label.chunk), "unsure") for label in rows]
        seen = np.array([number for number, verdict in enumerate(told) if verdict != "unsure"], dtype=np.intp)
        said = np.array([told[number] == "accept" for number in seen], dtype=np.float64)
        scores = [((label.relevance or 0) + (label.support or 0)) / HIGHEST for label in rows]
        return share(np.array(scores), seen, said) if len(seen) else None


def _asked(done: Done) -> Iterator[Asked]:
    """Yield who was asked: a step says it of itself, or of each of several judges or attempts."""
    described: Mapping[str, Any] = done.described
    for each in described.get("judges") or described.get("attempts") or [described]:
        if isinstance(each, Mapping) and isinstance(each.get("llm"), Mapping):
            llm, prompt = each["llm"], str(done.facts.get("prompt", ""))
            scripted = llm.get("backend") == "scripted"
            yield Asked(done.step, str(llm["model"]), prompt, str(each["prompt"]), scripted)


def origin(source: str) -> str:
    """Return where an item comes from without its page or line: the site of an address, a file, folder or archive."""
    if "://" in source:
        return urlsplit(source).netloc
    name, _, line = source.rpartition(":")
    return (name if name and line.isdigit() else source).partition("/")[0]
