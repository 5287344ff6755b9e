"""Leave out easy questions: those that small models answer correctly are too easy for a benchmark of reasoning."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from r2med.construction.items import Rejected, SourceQuestion, StreamItem
from r2med.construction.step import Step, StepWork, Streams
from r2med.construction.steps.asking import ITEMS_PER_BLOCK, AskingQuestions
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Words
from r2med.foundation.text.named import named_in
from r2med.models.ask.answers import Choice, OpenAnswer, choice_of

RIGHT_ANSWER = "right"
"""Reason for which an attempt rejects a question."""
_CHOICE = "Choose the best option.", '{"choice": "the letter of the option"}'
_OPEN = "Answer the question.", '{"answer": "the name of one entity, in a few words"}'


class _Attempt(AskingQuestions, kind="build", takes="llm"):
    """Let one model answer each question. A question goes on if its answer was wrong."""

    template = "drop-easy"
    answer = OpenAnswer

    name: str = "drop-easy"

    def settled(self, item: SourceQuestion) -> SourceQuestion | None:
        """Return the question itself if its answer is not known, since no attempt could be checked."""
        return None if item.answer else item

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return the task, the question, its options by letter and the form of the reply."""
        options = (f"{chr(ord('A') + number)}. {option}" for number, option in enumerate(item.options))
        task, reply = _CHOICE if item.options else _OPEN
        return {"task": task, "text": item.text, "options": "\n".join(options), "reply": reply}

    def answer_model(self, item: SourceQuestion) -> type[Choice | OpenAnswer]:
        """Return the model of a choice if the question has options, otherwise of an open answer."""
        return choice_of(len(item.options)) if item.options else OpenAnswer

    def read(self, item: SourceQuestion, answer: Choice | OpenAnswer) -> SourceQuestion | Rejected:
        """Return the question, rejected if it was answered right. Other names of the answer do not count as right."""
        if isinstance(answer, Choice):
            right = item.options[answer.choice] == item.answer
        else:
            right = bool(named_in(answer.answer, [item.answer]))
        return Rejected.of(item, RIGHT_ANSWER) if right else item


class DropEasy(Step, kind="build"):
    """Let small LLMs choose an option or, if there are none, name the answer. Leave out what most get right."""

    reads = ("questions",)
    writes = "questions"

    name: str = "drop-easy"
    llms: Words = Field((), description="The small LLMs, joined by a colon. Without any, the LLM of the plan is asked.")
    share: float = Field(
        0.5, ge=0, le=1, description="A question is left out if more than this share of LLMs answers right."
    )
    prompts: str = Field("", description="Folder with your own prompt templates, beside the plan.")
    tries: int = Field(3, ge=1, le=10, description="Number of requests to an LLM before its answer counts as wrong.")

    @property
    def attempts(self) -> list[_Attempt]:
        """One attempt for each LLM."""
        return [_Attempt(llm=llm, prompts=self.prompts, tries=self.tries) for llm in self.llms or ("",)]

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the output depends on: settings, prompt and LLMs."""
        attempts = [attempt.key(streams, runtime) for attempt in self.attempts]
        return {**super().key(streams, runtime), "attempts": attempts}

    def calls(self, streams: Streams, runtime: Runtime) -> Needs | None:
        """Return what all LLMs would be asked."""
        return sum(filter(None, (attempt.calls(streams, runtime) for attempt in self.attempts)), Needs())

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Ask every LLM about one block of questions, then go on to the next block."""
        right = Counter[str]()
        for attempt in self.attempts:
            attempt.announce(streams, work)
        total = sum(1 for _ in streams.questions()) * len(self.attempts)
        begun, questions = 0, streams.questions()
        while block := list(itertools.islice(questions, ITEMS_PER_BLOCK)):
            rounds = []
            for attempt in self.attempts:
                rounds.append(list(attempt.about(iter(block), streams, work, total, begun)))
                begun += len(block)
            for question, *outcomes in zip(block, *rounds, strict=True):
                solvers = [
                    attempt.llm or work.runtime.setup.llm
                    for attempt, outcome in zip(self.attempts, outcomes, strict=True)
                    if isinstance(outcome, Rejected) and outcome.reason == RIGHT_ANSWER
                ]
                right.update(solvers)
                if len(solvers) > self.share * len(self.attempts):
                    yield Rejected.of(question, "Answered By Small Models", ", ".join(solvers))
                else:
                    yield question
        work.facts["answered right"] = dict(right)
