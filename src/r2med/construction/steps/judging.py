"""LLM judges: how far a candidate answers the question, and how far it supports the reasoning towards the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from r2med.ask.answers import LLMAnswer, Text, score
from r2med.construction.items import Item, Judgement, Rejected, Stream
from r2med.construction.step import Streams, Work
from r2med.construction.steps.asking import Asking
from r2med.construction.steps.cases import Case, cases
from r2med.core.stages import Words
from r2med.llm.llm_cards import families
from r2med.runtime.runtime import Runtime

HIGHEST = 5
"""Of a score; 0 is the lowest."""


class JudgeScores(LLMAnswer):
    """The reason first, then the scores that follow from it."""

    rationale: Text
    relevance: Annotated[int, score(HIGHEST)]
    support: Annotated[int, score(HIGHEST)]


class Judge(Asking[Case], kind="build", needs="llm"):
    """Score every candidate for answer relevance and reasoning support, 0 to 5 each, by one LLM or several."""

    template: ClassVar[str] = "judge"
    answer: ClassVar[type[LLMAnswer]] = JudgeScores
    reads: ClassVar[tuple[Stream, ...]] = ("questions", "chunks", "candidates")
    writes: ClassVar[Stream] = "judgements"
    adds: ClassVar[bool] = True

    name: str = "judge"
    judges: Words = Field((), description="several LLMs, each of which judges every candidate")

    def asked(self, streams: Streams) -> Iterator[Case]:
        """Yield every candidate with its question and text."""
        return cases(streams)

    def fields(self, item: Case) -> Mapping[str, str]:
        """Return what the judge is shown: nothing tells where a candidate comes from, or that it was planted."""
        return {
            "query": item.question.text,
            "answer": item.question.answer or "(not known)",
            "reasoning": item.question.reasoning or "(not given)",
            "text": item.text,
        }

    def read(self, item: Case, answer: JudgeScores) -> Judgement:
        """Return the judgement."""
        return Judgement(
            question=item.question.id,
            chunk=item.candidate.chunk,
            judge=self.llm,
            control=item.candidate.control,
            **dict(answer),
        )

    def failed(self, item: Case, kind: str) -> Rejected:
        """Return a candidate that a judge said nothing usable about."""
        return Rejected.of(item.candidate, "no usable answer", f"{self.llm}: {kind}")

    def describe(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return all that judgements depend on, judge by judge."""
        return {"judges": [super(Judge, each).describe(streams, runtime) for each in self._single(runtime)]}

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Let each judge score every candidate. Whose family each is, is told: it should judge none of its own."""
        told = work.facts["judges"] = {}
        for judge in self._single(work.runtime):
            card = judge.card(work.runtime)
            told[judge.llm] = {"model": card.model, "families": list(families(card))}
            yield from super(Judge, judge).run(streams, work)

    def _single(self, runtime: Runtime) -> list[Judge]:
        """Return a step for each judge."""
        llms = dict.fromkeys((*([self.llm] if self.llm else []), *self.judges)) or [runtime.setup.llm]
        return [self.model_copy(update={"llm": llm, "judges": ()}) for llm in llms]
