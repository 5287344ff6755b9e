"""Tokens and dollars of LLM calls: of a bill, about, and at most; how many failed; and what a stage would ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass

from r2med.core.cost import Cost
from r2med.llm.chat import ChatModel, ChatRequest, Failure, Generation, Message, RawAnswer
from r2med.llm.llm_cards import LLMCard

Answer = Generation | RawAnswer | Failure

_PER_MESSAGE = 4
"""Tokens that a chat template adds to a message, about."""
_OPENING = 1
"""Tokens that are put before a raw prompt, at most: a BOS."""
_TYPICAL = {False: 400, True: 2500}
"""Tokens of an answer by whether the model reasons first: the order of magnitude, for want of anything better."""
_SHORT = 200
"""Letters of a reason that are shown; servers have been seen to answer with whole pages."""


def approximate_tokens(text: str) -> int:
    """Return a text's tokens, about: a quarter of its characters in English, three quarters in Chinese."""
    return (_bytes(text) + 3) // 4


def prompt_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of a conversation, about."""
    return sum(approximate_tokens(message.content) + _PER_MESSAGE for message in messages)


def request_tokens(request: ChatRequest) -> int:
    """Return the tokens that a request sends, about."""
    return prompt_tokens(request.messages) if request.prompt is None else approximate_tokens(request.prompt)


def _most_request_tokens(request: ChatRequest) -> int:
    """Return a bound for the tokens of a request: no tokenizer in use makes more of a text than it has bytes."""
    if request.prompt is not None:
        return _bytes(request.prompt) + _OPENING
    return sum(_bytes(message.content) + _PER_MESSAGE for message in request.messages)


def _most_answer_tokens(card: LLMCard, request: ChatRequest) -> int:
    return min(request.sampling.max_tokens or card.max_tokens, card.context_length)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def dollars(card: LLMCard, prompt: int, completion: int) -> float:
    """Return the price of so many tokens; 0 where it is not known (see `is_priced`)."""
    return (prompt * card.price.prompt + completion * card.price.completion) / 1e6


def dollars_at_most(card: LLMCard, request: ChatRequest) -> float:
    """Return the price that one request cannot exceed."""
    return dollars(card, _most_request_tokens(request), _most_answer_tokens(card, request))


def is_priced(card: LLMCard) -> bool:
    """Return whether the price of an answer is known: a model that runs in this process costs nothing."""
    return card.backend != "openai" or "price" in card.model_fields_set


def answers_cost(answers: Iterable[Answer], card: LLMCard, cut: int = 0) -> Cost:
    """Return what answers took: the same on every run, asked now or read from the journal.

    `cut` is how many prompts had to be cut to fit.
    """
    asked = [answer for answer in answers if not (isinstance(answer, Failure) and answer.attempts == 0)]
    prompt = sum(answer.prompt_tokens for answer in asked)
    completion = sum(answer.completion_tokens for answer in asked)
    return Cost(
        seconds=sum(answer.seconds for answer in asked),
        calls=len(asked),
        prompt_tokens=prompt,
        completion_tokens=completion,
        cut=cut,
        dollars=dollars(card, prompt, completion),
        unpriced=0 if is_priced(card) else len(asked),
        latencies=tuple(answer.seconds for answer in asked if not isinstance(answer, Failure)),
    )


def failure_kinds(answers: Iterable[Answer]) -> dict[str, int]:
    """Return how many answers failed, by kind."""
    return dict(sorted(Counter(answer.kind for answer in answers if isinstance(answer, Failure)).items()))


def failed_queries(answers: Iterable[tuple[str, Answer]]) -> dict[str, str]:
    """Return the queries of which answers failed, with how many of each kind; `answers` are (query, answer)."""
    failed: dict[str, list[Failure]] = {}
    for query, answer in answers:
        if isinstance(answer, Failure):
            failed.setdefault(query, []).append(answer)
    return {query: listed_kinds(failure_kinds(failures)) for query, failures in failed.items()}


def failure_reasons(answers: Iterable[Answer]) -> dict[str, str]:
    """Return why answers failed: for each kind what the first of them said, on one line."""
    reasons: dict[str, str] = {}
    for answer in answers:
        if isinstance(answer, Failure):
            reasons.setdefault(answer.kind, " ".join(answer.message.split()))
    return {
        kind: reason if len(reason) <= _SHORT else f"{reason[: _SHORT - 1].rstrip()}…"
        for kind, reason in sorted(reasons.items())
    }


def listed_kinds(kinds: Mapping[str, int]) -> str:
    """Return how many failures there are of each kind, in words: "2 empty, 1 server"."""
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def told_failures(what: str, answers: Sequence[Answer]) -> list[str]:
    """Return what to tell of answers that failed: one line with their kinds, and the first reason of each kind.

    `what` says what became of them, as in "3 of 9 queries got no text and are searched as they are".
    """
    kinds = failure_kinds(answers)
    if not kinds:
        return []
    first = failure_reasons(answers)
    return [f"{what} ({listed_kinds(kinds)})", *(f"{kind}: {reason}" for kind, reason in first.items())]


@dataclass(frozen=True)
class CallEstimate:
    """What calls would take, about."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    """A usual answer's, times the calls."""
    dollars: float
    dollars_at_most: float
    """When every answer uses up its token limit."""

    def __add__(self, other: CallEstimate) -> CallEstimate:
        return CallEstimate(*(mine + others for mine, others in zip(astuple(self), astuple(other), strict=True)))


NO_CALLS = CallEstimate(0, 0, 0, 0.0, 0.0)


def estimate(requests: Iterable[ChatRequest], card: LLMCard) -> CallEstimate:
    """Return what these requests would take; identical ones are asked once."""
    distinct = list(dict.fromkeys(requests))
    prompt = sum(request_tokens(request) for request in distinct)
    reasons = card.api_style == "reasoning" or card.answer in ("think", "final-response")
    limits = [_most_answer_tokens(card, request) for request in distinct]
    completion = sum(min(_TYPICAL[reasons], limit) for limit in limits)
    about, most = dollars(card, prompt, completion), dollars(card, prompt, sum(limits))
    return CallEstimate(len(distinct), prompt, completion, about, most)


@dataclass(frozen=True)
class Preview:
    """The questions of a stage about one dataset, known before any is asked; previews of several datasets add up."""

    card: LLMCard
    requests: tuple[ChatRequest, ...]
    unanswered: tuple[ChatRequest, ...]
    """Those that would be asked: nobody has answered them yet."""
    cut: int = 0
    """Prompts that something would be left out of."""
    unfit: int = 0
    """Prompts that would not fit at all, and not be asked."""
    note: str = ""
    """What the number of requests does not tell, such as the turns of a conversation that begins with each."""

    @classmethod
    def of(
        cls,
        llm: ChatModel,
        card: LLMCard,
        requests: Sequence[ChatRequest],
        *,
        keep_cut: bool = False,
        cut: int = 0,
        unfit: int = 0,
        note: str = "",
    ) -> Preview:
        """Return the preview of requests, each of which is asked once; `keep_cut` as `complete` will have it."""
        distinct = tuple(dict.fromkeys(requests))
        return cls(card, distinct, tuple(llm.unanswered(distinct, keep_cut=keep_cut)), cut, unfit, note)

    def __add__(self, other: Preview) -> Preview:
        return Preview(
            self.card,
            tuple(dict.fromkeys(self.requests + other.requests)),
            tuple(dict.fromkeys(self.unanswered + other.unanswered)),
            self.cut + other.cut,
            self.unfit + other.unfit,
            self.note or other.note,
        )

    @property
    def estimate(self) -> CallEstimate:
        """What asking would take, about."""
        return estimate(self.unanswered, self.card)
