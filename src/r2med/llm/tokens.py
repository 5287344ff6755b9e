"""Counting tokens without a tokenizer: near enough to estimate a bill or to leave room in a context."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.llm.contracts import ChatRequest, Message

_PER_MESSAGE = 4
"""What a chat template adds to a message, about."""
_OPENING = 1
"""What is put before a raw prompt, at most: a BOS."""


def approximate_tokens(text: str) -> int:
    """Return a text's tokens, about: a quarter of its characters in English, three quarters in Chinese."""
    return (_bytes(text) + 3) // 4


def prompt_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of a conversation, about."""
    return sum(approximate_tokens(message.content) + _PER_MESSAGE for message in messages)


def request_tokens(request: ChatRequest) -> int:
    """Return the tokens that a request sends, about."""
    return prompt_tokens(request.messages) if request.prompt is None else approximate_tokens(request.prompt)


def request_tokens_at_most(request: ChatRequest) -> int:
    """Return a bound for the tokens of a request: no tokenizer in use makes more of a text than it has bytes."""
    if request.prompt is not None:
        return _bytes(request.prompt) + _OPENING
    return sum(_bytes(message.content) + _PER_MESSAGE for message in request.messages)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
