"""Putting an answer together from the pieces of a stream, or from one body; whatever else comes is no answer."""

from __future__ import annotations

import json
from typing import Any

from r2med.llm.contracts import ChatRequest, RawAnswer
from r2med.llm.tokens import approximate_tokens, request_tokens

_NOT_THE_END = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons of servers that gave up (OpenRouter, vLLM, DeepSeek): not the model's doing, so worth a retry."""


class MalformedReply(Exception):  # noqa: N818 - reads as what came
    """What came is not what the protocol says."""


class ErrorReply(Exception):  # noqa: N818 - reads as what came
    """An error sent where an answer was due: status and body as if it had been the HTTP answer."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(status)
        self.status, self.body = status, body


class Reply:
    """An answer so far."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._finish_reason = ""
        self._usage: tuple[int, int] | None = None

    @property
    def complete(self) -> bool:
        """Return whether the model said that it was done."""
        return bool(self._finish_reason)

    def take(self, data: bytes, part: str) -> None:
        """Add one JSON object; `part` is what its choices hold: delta in a stream, message in one piece, and text,
        either way, where a raw prompt was continued.
        """
        try:
            piece: Any = json.loads(data)
        except (ValueError, RecursionError):
            raise MalformedReply("not JSON") from None
        if not isinstance(piece, dict):
            raise MalformedReply("no JSON object")
        if error := piece.get("error"):
            raise ErrorReply(_status(error), json.dumps({"error": error}))
        choices = piece.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise MalformedReply("no list of choices")
        for choice in choices:
            if not choice.get("index"):  # we ask for one
                said = choice.get(part)
                self._add(choice, {"content": said} if part == "text" else said or {})
        self._usage = _usage(piece.get("usage")) or self._usage

    def answer(self, request: ChatRequest, seconds: float) -> RawAnswer:
        """Return the finished answer; tokens that the server did not tell are counted roughly."""
        content, reasoning, refusal = "".join(self._content), "".join(self._reasoning), "".join(self._refusal)
        reason = self._finish_reason
        if refusal:
            content, reason = refusal, "refusal"
        usage = self._usage or (request_tokens(request), approximate_tokens(content) + approximate_tokens(reasoning))
        return RawAnswer(content, reasoning, reason, *usage, seconds=seconds, estimated=self._usage is None)

    def _add(self, choice: dict[str, Any], message: Any) -> None:
        if not isinstance(message, dict):
            raise MalformedReply("no message")
        for pieces, names in (
            (self._content, ("content",)),
            (self._reasoning, ("reasoning_content", "reasoning")),  # DeepSeek's and vLLM's name; OpenRouter's
            (self._refusal, ("refusal",)),
        ):
            text = next((message[name] for name in names if message.get(name)), "")
            if not isinstance(text, str):
                raise MalformedReply(f"{names[0]} is no text")
            pieces.append(text)
        reason = choice.get("finish_reason") or ""
        if not isinstance(reason, str):
            raise MalformedReply("finish_reason is no text")
        if reason in _NOT_THE_END:
            raise ErrorReply(500, json.dumps({"error": f"it gave up ({reason})"}))
        self._finish_reason = reason or self._finish_reason


def _usage(value: Any) -> tuple[int, int] | None:
    if not isinstance(value, dict):
        return None
    prompt, completion = value.get("prompt_tokens"), value.get("completion_tokens")
    if type(prompt) is int and type(completion) is int and prompt >= 0 and completion >= 0:
        return prompt, completion
    return None


def _status(error: Any) -> int:
    for name in ("code", "status"):
        status = error.get(name) if isinstance(error, dict) else None
        if type(status) is int and 400 <= status < 600:
            return status
    return 500
