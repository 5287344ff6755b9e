"""From what a model wrote to what it answered: the reasoning apart, and no reasoning ever taken for an answer."""

from __future__ import annotations

import re

from r2med.llm.contracts import Failure, FailureKind, Generation, RawAnswer
from r2med.llm.llm_cards import LLMCard
from r2med.text.unicode import to_unicode

VERSION = 2
"""Goes into the record: raw answers are what is journaled, so a change here changes texts without a call."""

_OPEN, _CLOSE = re.compile(r"<think(?:ing)?>", re.IGNORECASE), re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_CHANNEL, _FINAL_CHANNEL = "<|channel|>", "<|channel|>final<|message|>"  # gpt-oss, where a server does not parse it
# A heading or bold line, or a line of the words, a colon or nothing; not the words inside a sentence of reasoning.
_FINAL = re.compile(
    r"^[ \t>]*(?:\#+[ \t]*|\*\*|__)+final[ \t]response(?:\*\*|__)?[ \t]*:?[ \t]*(?:\*\*|__)?(?:[ \t]*\#+[ \t]*$)?"
    r"|^[ \t]*final[ \t]response(?:\*\*|__)?[ \t]*(?::(?:\*\*|__)?|$)",
    re.IGNORECASE | re.MULTILINE,
)
_ANSWER = re.compile(r"<answer>((?:(?!<answer>).)*?)</answer>", re.IGNORECASE | re.DOTALL)
_THINKING_HEADING = re.compile(r"^\s*\#+[ \t]*thinking[ \t]*:?\s*", re.IGNORECASE)


def clean(raw: RawAnswer, card: LLMCard) -> Generation | Failure:
    """Return the answer in a model's output, or why there is none."""
    content, reasoning = to_unicode(raw.content), to_unicode(raw.reasoning)
    if raw.finish_reason in ("content_filter", "refusal"):
        said = " ".join(content.split())[:200]
        return _failure(raw, "refused", f"{card.name} declined to answer{f': {said}' if said else ''}")
    if raw.finish_reason == "length":
        return _failure(raw, "truncated", f"{card.name} reached its limit of tokens before it was done")
    parts = _SPLIT[_kind(card, content, reasoning)](content)
    if parts is None:
        marker = {"final-response": "Final Response", "answer-tag": "<answer>"}.get(card.answer, "</think>")
        return _failure(raw, "no_marker", f"{card.name} ended without {marker}")
    thought, text = parts
    if not text.strip():
        return _failure(raw, "empty", f"{card.name} wrote nothing{' but reasoning' if reasoning or thought else ''}")
    whole = "\n\n".join(filter(None, (reasoning.strip(), thought.strip())))
    return Generation(text.strip(), whole, raw.finish_reason, raw.prompt_tokens, raw.completion_tokens, raw.seconds)


def _kind(card: LLMCard, content: str, reasoning: str) -> str:
    """Return how to split: a server that keeps the reasoning apart, or a switch that is off, leaves no marker."""
    if card.answer == "think" and (reasoning.strip() or card.thinking is False) and not _CLOSE.search(content):
        return "plain"
    if card.answer == "think" and reasoning.strip() and not content.strip():
        return "plain"  # and so empty: nothing but reasoning
    return card.answer


def _think(content: str) -> tuple[str, str] | None:
    marks = list(_CLOSE.finditer(content))
    if not marks or _OPEN.search(content, marks[-1].end()):  # never closed, or opened again after the answer
        return None
    return _OPEN.sub("", content[: marks[-1].start()], count=1).strip(), content[marks[-1].end() :]


def _plain(content: str) -> tuple[str, str] | None:
    """Split off the reasoning that a model wrote although its card expects none, however it marks it."""
    if _OPEN.search(content) or _CLOSE.search(content):
        return _think(content)
    if _CHANNEL in content:
        thought, marker, text = content.rpartition(_FINAL_CHANNEL)
        return (thought, text) if marker and _CHANNEL not in text else None
    return _final_response(content) if _THINKING_HEADING.match(content) else ("", content)


def _final_response(content: str) -> tuple[str, str] | None:
    marks = list(_FINAL.finditer(content))
    if not marks:
        return None
    return _THINKING_HEADING.sub("", content[: marks[-1].start()]), content[marks[-1].end() :]


def _answer_tag(content: str) -> tuple[str, str] | None:
    tags = list(_ANSWER.finditer(content))
    return (content[: tags[-1].start()], tags[-1].group(1)) if tags else None


_SPLIT = {"plain": _plain, "think": _think, "final-response": _final_response, "answer-tag": _answer_tag}


def _failure(raw: RawAnswer, kind: FailureKind, message: str) -> Failure:
    return Failure(kind, message, raw.attempts, raw.prompt_tokens, raw.completion_tokens, raw.seconds)
