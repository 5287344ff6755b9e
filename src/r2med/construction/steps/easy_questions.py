"""Questions that small models answer right are too easy for a benchmark of reasoning."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from r2med.ask.answers import Choice, OpenAnswer, choice_of
from r2med.construction.items import Item, Question, Rejected
from r2med.construction.step import Step, Streams, Work
from r2med.construction.steps.asking import AT_ONCE, AskingQuestions
from r2med.construction.steps.leaks import named_in
from r2med.core.stages import Words
from r2med.runtime.runtime import Runtime

RIGHT = "right"
_CHOICE = "Choose the best option.", '{"choice": "the letter of the option"}'
_OPEN = "Answer the question.", '{"answer": "the name of one entity, in a few words"}'


class _Attempt(AskingQuestions, kind="build", needs="llm"):
    """One model's answers: a question goes on if it was answered wrong."""

    template = "drop-easy"

    name: str = "drop-easy"

    def settled(self, item: Question) -> Question | None:
        """Return a question whose answer is not known."""
        return None if item.answer else item

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return the question, its options by letter, and how to reply."""
        options = (f"{chr(ord('A') + number)}. {option}" for number, option in enumerate(item.options))
        task, reply = _CHOICE if item.options else _OPEN
        return {"task": task, "text": item.text, "options": "\n".join(options), "reply": reply}

    def answer_model(self, item: Question) -> type[Choice | OpenAnswer]:
        """Return the letter of an option; without options the answer's name."""
        return choice_of(len(item.options)) if item.options else OpenAnswer

    def read(self, item: Question, answer: Choice | OpenAnswer) -> Question | Rejected:
        """Return the question, or as left out if it was answered right; by another name of the answer is not."""
        if isinstance(answer, Choice):
            right = item.options[answer.choice] == item.answer
        else:
            right = bool(named_in(answer.answer, [item.answer]))
        return Rejected.of(item, RIGHT) if right else item


class DropEasy(Step, kind="build"):
    """Let several small LLMs answer by choosing or, without options, naming; leave out what most get right."""

    reads = ("questions",)
    writes = "questions"

    name: str = "drop-easy"
    llms: Words = Field((), description="the small LLMs; without any, the LLM of the plan")
    share: float = Field(0.5, ge=0, le=1, description="a question is left out if more than this share answers right")
    prompts: str = Field("", description="a folder with templates of your own, beside the plan")
    tries: int = Field(3, ge=1, le=10, description="how often an LLM is asked before it counts as wrong")

    @property
    def attempts(self) -> list[_Attempt]:
        """One step for each LLM."""
        return [_Attempt(llm=llm, prompts=self.prompts, tries=self.tries) for llm in self.llms or ("",)]

    def describe(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return the settings, the prompt and the LLMs."""
        attempts = [attempt.describe(streams, runtime) for attempt in self.attempts]
        return {**super().describe(streams, runtime), "attempts": attempts}

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Ask every LLM about a block of questions before the next block."""
        right = Counter[str]()
        for attempt in self.attempts:
            attempt.announce(streams, work)
        total = sum(1 for _ in streams.questions()) * len(self.attempts)
        begun, questions = 0, streams.questions()
        while block := list(itertools.islice(questions, AT_ONCE)):
            rounds = []
            for attempt in self.attempts:
                rounds.append(list(attempt.about(iter(block), streams, work, total, begun)))
                begun += len(block)
            for question, *outcomes in zip(block, *rounds, strict=True):
                solvers = [
                    attempt.llm or work.runtime.setup.llm
                    for attempt, outcome in zip(self.attempts, outcomes, strict=True)
                    if isinstance(outcome, Rejected) and outcome.reason == RIGHT
                ]
                right.update(solvers)
                if len(solvers) > self.share * len(self.attempts):
                    yield Rejected.of(question, "Answered By Small Models", ", ".join(solvers))
                else:
                    yield question
        work.facts["answered right"] = dict(right)
