"""The calls of one reranking: prompts go to an LLM, answers are read, and all that goes wrong is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from r2med.data.runs.run import Run
from r2med.foundation.engine.tracing import query_span
from r2med.models.ask.json_in_text import Parsed
from r2med.models.llm.chat import ChatModel, ChatRequest, Failure, Generation, RawAnswer, Sampling, finish_reason
from r2med.models.llm.costs import answers_cost, failed_queries, failure_kinds, failure_reasons, listed_kinds
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.llm.llm_spans import calls_within
from r2med.models.prompts.fitting import Fitted, ask_fitted
from r2med.systems.rerank.card_prompts import CardPrompts
from r2med.systems.rerank.judge_prompts import JudgePrompts, Question
from r2med.systems.rerank.reranking import Reranked

Value = TypeVar("Value")
Complete = Callable[[Sequence[ChatRequest]], list[Generation | Failure]]
"""Function that answers requests in their order."""
Read = Callable[[Generation, int], Parsed[Value] | None]
"""Function that reads an answer about a number of passages; None: the answer cannot be used."""


class Asker:
    """Asks the questions of one reranking and counts failures and repairs."""

    def __init__(
        self,
        complete: Complete,
        as_written: Complete,
        card: LLMCard,
        prompts: JudgePrompts | CardPrompts,
        size: int,
        ids: Mapping[str, str],
    ) -> None:
        """Take the LLM and the prompts. `ids` maps query blocks to query ids, for traces."""
        self._complete = complete
        self._as_written = as_written
        self._card = card
        self._prompts = prompts
        self._size = size
        self._ids = ids
        self._answers: list[Generation | Failure] = []
        self._asked: list[str] = []  # The query block of each answer.
        self._repairs: Counter[str] = Counter()
        self._cut = 0
        self._questions = 0  # A call that continues an answer belongs to the question before it.
        self._counted = 0  # Unreadable answers that count as the card says.
        self._unscored = 0  # Passages that an answer with scores left out.

    @property
    def sampling(self) -> Sampling:
        """How the LLM's card draws tokens."""
        return sampling_of(self._card)

    def ask(
        self,
        questions: Sequence[Question],
        read: Read[Value],
        *,
        sampling: Sampling | None = None,
        top_logprobs: int = 0,
        as_written: bool = False,
        unreadable: Callable[[int], Value] | None = None,
    ) -> list[Value | None]:
        """Return what the answers say. An answer is None if its call failed or if it cannot be read.

        `sampling` replaces that of the LLM's card. With `as_written`, an answer that was cut at its limit of tokens,
        or that holds reasoning only, is read as well. `unreadable` returns what an answer counts that came but cannot
        be read, from its number of passages. A call without an answer is always None.
        """
        used = sampling or self.sampling
        complete = self._as_written if as_written else self._complete

        def ask(prompts: Mapping[int, Fitted]) -> list[Generation | Failure]:
            requests = [
                ChatRequest(prompt.messages, used, questions[number].sample, prompt.text, top_logprobs=top_logprobs)
                for number, prompt in prompts.items()
            ]
            spans = [query_span(self._ids.get(questions[number].query, "")) for number in prompts]
            with calls_within(zip(requests, spans, strict=True)):
                return complete(requests)

        fitted = [self._prompts.fitted(question, self._card, self._size) for question in questions]
        asked = ask_fitted({number: each for number, each in enumerate(fitted) if isinstance(each, Fitted)}, ask)
        self._cut += sum(prompt.cut for prompt, _ in asked.values())
        self._questions += sum(question.thought is None for question in questions)
        values: list[Value | None] = []
        for number, question in enumerate(questions):
            answer = unfit if isinstance(unfit := fitted[number], Failure) else asked[number][1]
            parsed = read(answer, len(question.passages)) if isinstance(answer, Generation) else None
            if isinstance(answer, Generation) and parsed and parsed.repairs.get("missing"):
                prompt = asked[number][0]
                shown = prompt.messages[-1].content if prompt.text is None else prompt.text
                parsed = None if _is_parrot(answer.text, shown) else parsed
            came = isinstance(answer, Generation) or answer.kind in MODEL_FAULTS
            if isinstance(answer, Generation) and parsed is None:
                answer = _unusable(answer)
            self._answers.append(answer)
            self._asked.append(question.query)
            self._repairs.update(parsed.repairs if parsed else {})
            if parsed and isinstance(parsed.value, dict):
                self._unscored += parsed.repairs.get("missing", 0)
            if parsed is None and came and unreadable is not None:
                self._counted += 1
                values.append(unreadable(len(question.passages)))
            else:
                values.append(parsed.value if parsed else None)
        return values

    def result(self, run: Run, blocks: Mapping[str, str], who: str) -> Reranked:
        """Return the new run with all counts.

        `blocks` maps query ids to query blocks. `who` is the prefix of the notices.
        """
        kinds = failure_kinds(self._answers)
        failed = failed_queries(zip(self._asked, self._answers, strict=True))
        return Reranked(
            run,
            cost=answers_cost(self._answers, self._card, self._cut),
            failures=sum(kinds.values()),
            asked=self._questions,
            failure_kinds=kinds,
            failed={query: failed[block] for query, block in blocks.items() if block in failed},
            repairs=dict(sorted(self._repairs.items())),
            notices=tuple(f"{who}: {notice}" for notice in self._notices(run, kinds)),
        )

    def _notices(self, run: Run, kinds: dict[str, int]) -> list[str]:
        notices = []
        if kinds:
            calls = f"{sum(kinds.values())} of {self._questions} calls gave no usable order ({listed_kinds(kinds)})"
            notices.append(f"{calls}; {self._positions(sum(kinds.values()))}")
            notices += [f"{kind}: {reason}" for kind, reason in failure_reasons(self._answers).items()]
        if unscored := self._unscored:
            were = "passage was" if unscored == 1 else "passages were"
            notices.append(f"{unscored:,} {were} shown but not scored; without another score they keep their positions")
        if unranked := self._repairs["missing"] - unscored:
            were = "passage was" if unranked == 1 else "passages were"
            notices.append(f"{unranked:,} {were} shown but not ranked; they come after the ranked ones")
        if self._cut:
            notices.append(f"{self._cut} prompts have shortened passages to fit {self._card.context_length} tokens")
        if len(run.queries) and not run.found.any():
            notices.append("there is nothing to rerank: no query of the run has a document")
        elif not self._answers and (run.found > 1).any():
            notices.append("nothing was asked: no query has enough candidates for one call, so the order is unchanged")
        return notices

    def _positions(self, failures: int) -> str:
        """Return what became of the documents of failed calls, in words."""
        if not self._counted:
            return "their documents keep their positions"
        counted = f"{self._counted} unreadable answers count as the card says"
        return counted if self._counted == failures else f"{counted}, the documents of the others keep their positions"


MODEL_FAULTS = ("empty", "truncated", "unfinished", "no_marker")
"""Kinds of failures where the model answered, but not as it should."""
PARROT_CHARACTERS = 120
"""Number of characters of the prompt's end, or of an answer, that show that one repeats the other."""


def _is_parrot(answer: str, prompt: str) -> bool:
    """Return True if an answer only repeats its prompt.

    The end of a prompt shows an example of the answer format. This check is used only for answers that leave passages
    out. An answer that ranks all passages is valid even if it repeats the prompt first.
    """
    said, asked = " ".join(answer.split()), " ".join(prompt.split())
    return asked[-PARROT_CHARACTERS:] in said or (len(said) >= PARROT_CHARACTERS and said in asked)


def of_text(parse: Callable[[str, int], Parsed[Value] | None]) -> Read[Value]:
    """Return the function that reads only the text of an answer."""
    return lambda answer, count: parse(answer.text, count)


def as_written(llm: ChatModel, requests: Sequence[ChatRequest]) -> list[Generation | Failure]:
    """Return the answers before cleaning; only a refusal is a failure."""
    return [answer if isinstance(answer, Failure) else _uncleaned(answer) for answer in llm.answers(requests)]


def _uncleaned(raw: RawAnswer) -> Generation | Failure:
    ended = finish_reason(raw.finish_reason)
    if ended == "refusal":
        return Failure.of(raw, "refused", "the model declined to answer")
    return Generation(raw.content, raw.reasoning, ended, raw.first_choices, raw.last_tokens, **raw.usage)


def _unusable(answer: Generation) -> Failure:
    said = " ".join(answer.text.split())[:100]
    message = f"the answer does not have the requested format: {said}"
    return Failure.of(answer, "invalid", message)
