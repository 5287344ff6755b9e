"""Counting tokens without a tokenizer: near enough to estimate a bill or to leave room in a context."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.models.chat.contracts import Message

_PER_MESSAGE = 4
"""What a chat template adds to a message, about."""


def approximate_tokens(text: str) -> int:
    """Return a text's tokens, about: a quarter of its characters in English, three quarters in Chinese."""
    return (len(text.encode("utf-8", "replace")) + 3) // 4


def prompt_tokens(messages: Iterable[Message]) -> int:
    """Return the tokens of a prompt, about."""
    return sum(approximate_tokens(message.content) + _PER_MESSAGE for message in messages)


def prompt_tokens_at_most(messages: Iterable[Message]) -> int:
    """Return a bound for the tokens of a prompt: no tokenizer in use makes more of a text than it has bytes."""
    return sum(len(message.content.encode("utf-8", "replace")) + _PER_MESSAGE for message in messages)
