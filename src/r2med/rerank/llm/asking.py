"""Asking an LLM about passages, and keeping count: failures, repairs, cuts, tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from r2med.llm.account import failure_kinds, reasons, usage_of
from r2med.llm.contracts import ChatModel, ChatRequest, Failure, Generation
from r2med.llm.llm_cards import LLMCard
from r2med.llm.open import sampling_of
from r2med.prompts.fitting import Fitted
from r2med.rerank.contracts import Reranked
from r2med.rerank.llm.fit import Prompts, Question, fitted
from r2med.rerank.llm.reading import Reading
from r2med.retrieve.run import Run

Value = TypeVar("Value")


class Asker:
    """One reranking's calls. Owns all counts of it."""

    def __init__(self, llm: ChatModel, card: LLMCard, prompts: Prompts, words: int) -> None:
        self._llm, self._card, self._prompts, self._words = llm, card, prompts, words
        self._answers: list[Generation | Failure] = []
        self._repairs: Counter[str] = Counter()
        self._cut = 0

    def ask(
        self, questions: Sequence[Question], read: Callable[[str, int], Reading[Value] | None]
    ) -> list[Value | None]:
        """Return what the answers say, None where a call failed or its answer cannot be used.

        `read` gets an answer's text and how many passages it is about.
        """
        prompts = fitted(self._prompts, self._card, questions, self._words)
        self._cut += sum(isinstance(prompt, Fitted) and prompt.cut for prompt in prompts)
        sampling = sampling_of(self._card)
        requests = [
            ChatRequest(prompt.messages, sampling, question.sample)
            for question, prompt in zip(questions, prompts, strict=True)
            if isinstance(prompt, Fitted)
        ]
        answered = iter(self._llm.complete(requests) if requests else ())
        values: list[Value | None] = []
        for question, prompt in zip(questions, prompts, strict=True):
            answer = prompt if isinstance(prompt, Failure) else next(answered)
            reading = read(answer.text, len(question.passages)) if isinstance(answer, Generation) else None
            if isinstance(answer, Generation) and reading is None:
                answer = _unusable(answer)
            self._answers.append(answer)
            self._repairs.update(reading.repairs if reading else {})
            values.append(reading.value if reading else None)
        return values

    def account(self, run: Run, who: str) -> Reranked:
        """Return the new run with all that was counted; `who` is named in notices."""
        usage, kinds = usage_of(self._answers, self._card, self._cut), failure_kinds(self._answers)
        return Reranked(
            run,
            failures=sum(kinds.values()),
            failure_kinds=kinds,
            repairs=dict(sorted(self._repairs.items())),
            llm=usage,
            seconds=usage["seconds"],
            notices=tuple(f"{who}: {notice}" for notice in self._notices(run, kinds)),
        )

    def _notices(self, run: Run, kinds: dict[str, int]) -> list[str]:
        notices = []
        if kinds:
            why = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            calls = f"{sum(kinds.values())} of {len(self._answers)} calls brought no order ({why})"
            notices.append(f"{calls}: their documents stay where they were")
            notices += [f"{kind}: {reason}" for kind, reason in reasons(self._answers).items()]
        if self._cut:
            notices.append(f"{self._cut} prompts were cut at their passages to fit {self._card.context_length} tokens")
        if len(run.queries) and not run.found.any():
            notices.append("there is nothing to rerank: no query of the run has a document")
        return notices


def _unusable(answer: Generation) -> Failure:
    said = " ".join(answer.text.split())[:100]
    message = f"an answer that is not in the form it was asked for: {said}"
    return Failure("invalid", message, 1, answer.prompt_tokens, answer.completion_tokens, answer.seconds)
