"""The calls of one reranking: prompts go to an LLM, answers are read, and everything that goes wrong is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeVar

from r2med.data.runs.run import Run
from r2med.models.ask.json_in_text import Parsed
from r2med.models.llm.chat import ChatModel, ChatRequest, Failure, Generation, RawAnswer, Sampling, finish_reason
from r2med.models.llm.cleaning import whole_sentences
from r2med.models.llm.costs import answers_cost, failed_queries, failure_kinds, failure_reasons, listed_kinds
from r2med.models.llm.llm_cards import LLMCard, sampling_of
from r2med.models.prompts.fitting import Fitted, ask_fitted
from r2med.systems.rerank.llm_answers import Scored, read_label, read_order, read_scores
from r2med.systems.rerank.llm_prompts import Question, RerankPrompts
from r2med.systems.rerank.parse_order import Order
from r2med.systems.rerank.reranking import Reranked

TOP_LOGPROBS = 20
"""Alternatives to a token that are asked for: the most that OpenAI gives, and the default of vLLM."""
THOUGHT_END = "</think>"
NO_LABEL = -1
"""The label of an answer that names no passage."""

Value = TypeVar("Value")
Read = Callable[[Generation, int], Parsed[Value] | None]
"""Function that reads an answer about a number of passages; None: the answer cannot be used."""


class Asker(Protocol):
    """Anything that answers the questions of a form. An answer is None if its call failed or if it cannot be read."""

    def orders(self, questions: Sequence[Question]) -> list[Order | None]:
        """Return the order of the passages of each question."""

    def scores(self, questions: Sequence[Question]) -> list[Scored | None]:
        """Return the scores of the passages of each question."""

    def labels(self, questions: Sequence[Question]) -> list[int | None]:
        """Return the index of the best passage of each question; NO_LABEL if an answer names no passage."""


class LLMAsker:
    """Asks an LLM the questions of one reranking in the form of a card, and counts failures and repairs."""

    def __init__(self, chat: ChatModel, llm: LLMCard, prompts: RerankPrompts) -> None:
        self._chat = chat
        self._llm = llm
        self._prompts = prompts
        self._card = prompts.card
        self._answers: list[Generation | Failure] = []
        self._asked: list[str] = []  # The query of each answer, as prompts show it.
        self._repairs: Counter[str] = Counter()
        self._cut = 0
        self._questions = 0  # A call that continues an answer belongs to the question before it.
        self._counted = 0  # Unreadable answers that count as the card says.
        self._unscored = 0  # Passages that an answer with scores left out.

    def orders(self, questions: Sequence[Question]) -> list[Order | None]:
        """Return the order of the passages of each question; None if there is no usable answer."""
        # The first token alone is an answer that was cut at its limit.
        return self._ask(questions, read_order(self._card), as_written=self._card.answer == "first-token")

    def scores(self, questions: Sequence[Question]) -> list[Scored | None]:
        """Return the scores of the passages of each question; None if there is no usable answer.

        If the card says so, an answer that cannot be read has a score. A call that failed never has one.
        """
        score = self._card.unreadable
        unreadable = None if score is None else lambda count: dict.fromkeys(range(count), score)
        if self._card.answer == "true-false":
            return self._true_shares(questions, unreadable)
        return self._ask(questions, read_scores(self._card), unreadable=unreadable)

    def labels(self, questions: Sequence[Question]) -> list[int | None]:
        """Return the index of the best passage of each question; NO_LABEL if an answer names no passage."""
        return self._ask(questions, partial(read_label, self._card), unreadable=lambda _: NO_LABEL)

    def _true_shares(
        self, questions: Sequence[Question], unreadable: Callable[[int], Scored] | None
    ) -> list[Scored | None]:
        """Return the probability of true after a thought: the thought is written first, then one token is asked for."""
        sampling = sampling_of(self._llm)
        thoughts = self._ask(
            questions, _thought, sampling=replace(sampling, stop=(THOUGHT_END,)), as_written=True, top_logprobs=0
        )
        thought = [
            replace(question, thought=f"{said}{THOUGHT_END}")
            for question, said in zip(questions, thoughts, strict=True)
            if said is not None
        ]
        one_token = replace(sampling, max_tokens=1)
        read = read_scores(self._card)
        shares = iter(self._ask(thought, read, sampling=one_token, as_written=True, unreadable=unreadable))
        return [None if said is None else next(shares) for said in thoughts]

    def _ask(
        self,
        questions: Sequence[Question],
        read: Read[Value],
        *,
        sampling: Sampling | None = None,
        top_logprobs: int | None = None,
        as_written: bool = False,
        unreadable: Callable[[int], Value] | None = None,
    ) -> list[Value | None]:
        """Return what the answers say. An answer is None if its call failed or if it cannot be read.

        `sampling` and `top_logprobs` replace those of the cards. With `as_written`, an answer that was cut at its limit
        of tokens, or that holds reasoning only, is read as well. An answer that came but cannot be read has the value
        that `unreadable` returns for its number of passages. A call without an answer is always None.
        """
        used = sampling or replace(sampling_of(self._llm), stop=self._card.stop)
        top = (TOP_LOGPROBS if self._card.uses_probabilities else 0) if top_logprobs is None else top_logprobs

        def ask(prompts: Mapping[int, Fitted]) -> list[Generation | Failure]:
            requests = [
                ChatRequest(prompt.messages, used, questions[number].sample, prompt.text, top_logprobs=top)
                for number, prompt in prompts.items()
            ]
            return _as_written(self._chat, requests) if as_written else self._chat.complete(requests)

        fitted = [self._prompts.fitted(question, self._llm, self._prompts.size) for question in questions]
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

        `blocks` maps query ids to queries as prompts show them. `who` is the prefix of the notices.
        """
        kinds = failure_kinds(self._answers)
        failed = failed_queries(zip(self._asked, self._answers, strict=True))
        return Reranked(
            run,
            cost=answers_cost(self._answers, self._llm, self._cut),
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
            notices.append(f"{self._cut} prompts have shortened passages to fit {self._llm.context_length} tokens")
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


def _thought(answer: Generation, count: int) -> Parsed[str]:
    """Return a thought; one that was cut at its limit ends with its last whole sentence."""
    return Parsed(f"{whole_sentences(answer.text)}\n" if answer.finish_reason == "length" else answer.text)


def _as_written(llm: ChatModel, requests: Sequence[ChatRequest]) -> list[Generation | Failure]:
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
