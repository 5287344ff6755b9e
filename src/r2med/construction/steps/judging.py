"""LLM judges score how well a candidate answers the question and supports the reasoning towards the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from r2med.construction.items import Judgement, Rejected, Stream, StreamItem
from r2med.construction.step import StepWork, Streams
from r2med.construction.steps.asking import AskingStep
from r2med.construction.steps.full_candidates import FullCandidate, full_candidates
from r2med.foundation.core.stages import Words
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.ask.answers import LLMAnswer, Text, score
from r2med.models.llm.llm_cards import families

HIGHEST_SCORE = 5
"""The highest score of a judge. The lowest is 0."""


class JudgeScores(LLMAnswer):
    """The scores of a judge. The LLM writes its reason first, so that the scores follow from it."""

    rationale: Text
    relevance: Annotated[int, score(HIGHEST_SCORE)]
    support: Annotated[int, score(HIGHEST_SCORE)]


class Judge(AskingStep[FullCandidate], kind="build", needs="llm"):
    """Score every candidate for answer relevance and reasoning support, 0 to 5 each, by one LLM or several."""

    template: ClassVar[str] = "judge"
    answer: ClassVar[type[LLMAnswer]] = JudgeScores
    reads: ClassVar[tuple[Stream, ...]] = ("questions", "chunks", "candidates")
    writes: ClassVar[Stream] = "judgements"
    adds: ClassVar[bool] = True

    name: str = "judge"
    judges: Words = Field((), description="Several LLMs, joined by a colon. Each of them judges every candidate.")

    def asked(self, streams: Streams) -> Iterator[FullCandidate]:
        """Yield every candidate together with its question and text."""
        return full_candidates(streams)

    def fields(self, item: FullCandidate) -> Mapping[str, str]:
        """Return the fields that the judge sees. They do not reveal a candidate's origin, or that it was planted."""
        return {
            "query": item.question.text,
            "answer": item.question.answer or "(not known)",
            "reasoning": item.question.reasoning or "(not given)",
            "text": item.text,
        }

    def item_id(self, item: FullCandidate) -> str:
        """Return the ids of the question and the chunk."""
        return item.candidate.key

    def read(self, item: FullCandidate, answer: JudgeScores) -> Judgement:
        """Return the judgement of this LLM."""
        return Judgement(
            question=item.question.id,
            chunk=item.candidate.chunk,
            judge=self.llm,
            control=item.candidate.control,
            **dict(answer),
        )

    def failed(self, item: FullCandidate, kind: str) -> Rejected:
        """Return the candidate as rejected, because this judge gave no usable answer about it."""
        return Rejected.of(item.candidate, "no usable answer", f"{self.llm}: {kind}")

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the judgements depend on, for each judge."""
        return {"judges": [super(Judge, each).key(streams, runtime) for each in self._single(runtime)]}

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Let each judge score every candidate.

        The facts record the model families of each judge, since a judge should not rate systems of its own family.
        """
        known = work.facts["judges"] = {}
        for judge in self._single(work.runtime):
            card = judge.card(work.runtime)
            known[judge.llm] = {"model": card.model, "families": list(families(card))}
            yield from super(Judge, judge).run(streams, work)

    def _single(self, runtime: Runtime) -> list[Judge]:
        """Return one step for each judge."""
        llms = dict.fromkeys((*([self.llm] if self.llm else []), *self.judges)) or [runtime.setup.llm]
        return [self.model_copy(update={"llm": llm, "judges": ()}) for llm in llms]
