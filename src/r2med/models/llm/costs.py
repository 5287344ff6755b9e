"""Tokens, prices and failures of LLM calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from r2med.foundation.core.cost import Cost
from r2med.models.llm.chat import ChatRequest, Failure, Generation, Message, RawAnswer
from r2med.models.llm.llm_cards import LLMCard

LLMResult = Generation | RawAnswer | Failure

_MESSAGE_TOKENS = 4
"""Approximate number of tokens that a chat template adds to a message."""
_BOS_TOKENS = 1
"""Maximum number of tokens before a raw prompt: a BOS."""
_MAX_REASON_CHARACTERS = 200
"""Maximum number of characters of a reason that are shown. Some servers answer with whole pages."""


def approximate_tokens(text: str) -> int:
    """Return the approximate number of tokens of a text.

    It is a quarter of the characters in English and three quarters in Chinese.
    """
    return (_bytes(text) + 3) // 4


def prompt_tokens(messages: Iterable[Message]) -> int:
    """Return the approximate number of tokens of a conversation."""
    return sum(approximate_tokens(text) + _MESSAGE_TOKENS for message in messages for text in _texts(message))


def request_tokens(request: ChatRequest) -> int:
    """Return the approximate number of tokens that a request sends."""
    if request.prompt is not None:
        return approximate_tokens(request.prompt)
    return prompt_tokens(request.messages) + approximate_tokens(request.tools)


def _most_request_tokens(request: ChatRequest) -> int:
    """Return an upper bound for the tokens of a request. Tokenizers never make more tokens than a text has bytes."""
    if request.prompt is not None:
        return _bytes(request.prompt) + _BOS_TOKENS
    texts = (text for message in request.messages for text in _texts(message))
    return sum(_bytes(text) + _MESSAGE_TOKENS for text in texts) + _bytes(request.tools)


def _texts(message: Message) -> Iterator[str]:
    """Yield the text of a message, and that of each tool call."""
    yield message.content
    for call in message.calls:
        yield f"{call.name}{call.arguments}"


def _most_answer_tokens(card: LLMCard, request: ChatRequest) -> int:
    return min(request.sampling.max_tokens or card.max_tokens, card.context_length)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def dollars(card: LLMCard, prompt: int, completion: int) -> float:
    """Return the price of tokens in dollars, or 0 if the price is unknown (see `is_priced`)."""
    return (prompt * card.price.prompt + completion * card.price.completion) / 1e6


def dollars_at_most(card: LLMCard, request: ChatRequest) -> float:
    """Return the maximum price of one request in dollars."""
    return dollars(card, _most_request_tokens(request), _most_answer_tokens(card, request))


def is_priced(card: LLMCard) -> bool:
    """Return True if the price of an answer is known. A model in this process costs nothing."""
    return card.backend != "openai" or "price" in card.model_fields_set


def answers_cost(answers: Iterable[LLMResult], card: LLMCard, cut: int = 0) -> Cost:
    """Return the cost of answers. It is the same for new answers and for answers from the journal.

    `cut` is the number of prompts that had to be cut to fit.
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
    )


def failure_kinds(answers: Iterable[LLMResult]) -> dict[str, int]:
    """Return the number of failed answers by kind."""
    return dict(sorted(Counter(answer.kind for answer in answers if isinstance(answer, Failure)).items()))


def failed_queries(answers: Iterable[tuple[str, LLMResult]]) -> dict[str, str]:
    """Return the queries with failed answers and the number of failures by kind. `answers` are (query, answer)."""
    failed: dict[str, list[Failure]] = {}
    for query, answer in answers:
        if isinstance(answer, Failure):
            failed.setdefault(query, []).append(answer)
    return {query: listed_kinds(failure_kinds(failures)) for query, failures in failed.items()}


def failure_reasons(answers: Iterable[LLMResult]) -> dict[str, str]:
    """Return the reason of the first failure of each kind, on one line."""
    reasons: dict[str, str] = {}
    for answer in answers:
        if isinstance(answer, Failure):
            reasons.setdefault(answer.kind, " ".join(answer.message.split()))
    return {
        kind: reason if len(reason) <= _MAX_REASON_CHARACTERS else f"{reason[: _MAX_REASON_CHARACTERS - 1].rstrip()}…"
        for kind, reason in sorted(reasons.items())
    }


def listed_kinds(kinds: Mapping[str, int]) -> str:
    """Return the number of failures by kind as text, for example "2 empty, 1 server"."""
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def failure_notices(what: str, answers: Sequence[LLMResult]) -> list[str]:
    """Return messages about failed answers: one line with their kinds, and the first reason of each kind.

    `what` says what happened to them, for example "3 of 9 queries got no text and are searched unchanged".
    """
    kinds = failure_kinds(answers)
    if not kinds:
        return []
    first = failure_reasons(answers)
    return [f"{what} ({listed_kinds(kinds)})", *(f"{kind}: {reason}" for kind, reason in first.items())]
