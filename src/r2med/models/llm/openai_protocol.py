"""OpenAI's protocol without the network: request bodies, parsing of replies, and the meaning of errors."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from r2med.foundation.net.endpoint import Endpoint
from r2med.foundation.net.http import RequestFailed, error_message, status_failure
from r2med.models.llm.chat import LAST_TOKENS, ChatRequest, Logprobs, RawAnswer, ToolCall, finish_reason
from r2med.models.llm.costs import approximate_tokens, request_tokens
from r2med.models.llm.llm_cards import LLMCard

MAX_COUNT_DIGITS = 12
"""Digits of a number of tokens that are read. Python refuses numbers with thousands of digits."""
MAX_LOGPROB = 0.01
"""Largest log-probability that is read. Half precision may round one slightly above 0."""


def request_body(card: LLMCard, request: ChatRequest) -> dict[str, Any]:
    """Return the request body, with only those settings that the API accepts."""
    # top_k and repetition_penalty are not part of OpenAI's protocol, but vLLM, llama.cpp and others accept them. OpenAI
    # refuses them, so they are sent only if they are set.
    settings = request.settings
    if request.prompt is not None:
        # For a raw prompt, the default limit of OpenAI and vLLM is 16 tokens, which is never intended.
        settings.setdefault("max_tokens", card.max_tokens)
    elif card.api_style == "reasoning":  # Completions are older than that style.
        settings = {name: value for name, value in settings.items() if name not in ("temperature", "top_p")}
        if "max_tokens" in settings:
            settings["max_completion_tokens"] = settings.pop("max_tokens")
    if request.prompt is None and card.thinking is not None:
        settings["chat_template_kwargs"] = {"enable_thinking": card.thinking}
    settings |= logprob_settings(request) | request.tool_settings
    return {"model": card.model, **request.text, "stream": True, **settings}


def count_body(card: LLMCard, request: ChatRequest) -> dict[str, Any]:
    """Return the body that asks vLLM's /tokenize for the number of tokens of a request."""
    thinking = request.prompt is None and card.thinking is not None
    template = {"chat_template_kwargs": {"enable_thinking": card.thinking}} if thinking else {}
    return {"model": card.model, **request.text, **template}


def counted_sizes(body: bytes) -> Sizes:
    """Return the tokens of a prompt and of the context, from an answer of vLLM's /tokenize; zeros if it has others."""
    try:
        content = json.loads(body)
        return Sizes(int(content["count"]), int(content["max_model_len"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Sizes()


_NEEDED_MESSAGE = re.compile(
    r"\((\d+) in the (?:messages|prompt)|resulted in (\d+) tokens|passed (\d+) input tokens"
    r"|(?:contains|has) (\d+) (?:input )?tokens|request \((\d+) tokens\)|prompt \(length (\d+)\)",
    re.IGNORECASE,
)
"""Number of tokens of a prompt in refusals of vLLM, OpenAI and llama.cpp. "At least 4097" says too little."""
_CONTEXT_MESSAGE = re.compile(
    r"(?:context (?:length|window|size)|model length)(?: is| of)?(?: only)? \(?(?:of )?(?:length )?(\d+)", re.IGNORECASE
)


class Sizes(NamedTuple):
    """What a server says of a prompt that it refused. 0: it does not say it."""

    prompt: int = 0
    """Tokens of the prompt."""
    context: int = 0
    """Tokens that prompt and answer may have together."""

    def share(self, answer: int) -> float:
        """Return the share of the prompt that leaves room for an answer of some tokens; 0: unknown, or no room."""
        room = self.context - answer
        return room / self.prompt if 0 < room < self.prompt else 0.0


def stated_sizes(refusal: str) -> Sizes:
    """Return the numbers that a refusal states."""
    needed, context = _NEEDED_MESSAGE.search(refusal), _CONTEXT_MESSAGE.search(refusal)
    prompt = next(filter(None, needed.groups())) if needed else "0"
    return Sizes(int(prompt[:MAX_COUNT_DIGITS]), int(context[1][:MAX_COUNT_DIGITS]) if context else 0)


def logprob_settings(request: ChatRequest) -> dict[str, Any]:
    """Return the settings that ask for log-probabilities. The two endpoints have different names for them."""
    if not request.top_logprobs:
        return {}
    if request.prompt is not None:
        return {"logprobs": request.top_logprobs}
    return {"logprobs": True, "top_logprobs": request.top_logprobs}


def read_logprobs(logprobs: Any) -> tuple[list[tuple[str, float]], list[Logprobs]]:
    """Return the tokens of a choice with their log-probabilities, and the alternatives to each token.

    Chat endpoints and llama.cpp send a list `content`. Completions of OpenAI and vLLM send three parallel lists.
    """
    if not isinstance(logprobs, dict):
        return [], []
    try:
        if isinstance(content := logprobs.get("content"), list):
            tokens = [(str(each["token"]), _logprob(each["logprob"])) for each in content]
            tops = [
                tuple((str(top["token"]), _logprob(top["logprob"])) for top in each.get("top_logprobs") or ())
                for each in content
            ]
            return tokens, tops
        names, values = logprobs.get("tokens") or [], logprobs.get("token_logprobs") or []
        listed = logprobs.get("top_logprobs") or [{}] * len(names)
        tops = [tuple((str(name), _logprob(value)) for name, value in (each or {}).items()) for each in listed]
        return [(str(name), _logprob(value)) for name, value in zip(names, values, strict=True)], tops
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise MalformedReply("a list of log-probabilities that cannot be read") from None


def _logprob(value: Any) -> float:
    """Return a log-probability. Raises ValueError for NaN, and for a number that no probability has."""
    logprob = float(value)
    if not logprob <= MAX_LOGPROB:  # Also true for NaN, which JSON of Python allows.
        raise ValueError("not a log-probability")
    return min(logprob, 0.0)


class MalformedReply(Exception):  # noqa: N818 - reads as what came
    """Error for a reply that does not follow the protocol."""


class ErrorReply(Exception):  # noqa: N818 - reads as what came
    """An error instead of an answer, with status and body as if it had been the HTTP answer."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class Reply:
    """A partial answer, built from the pieces of a stream or from one body."""

    _GAVE_UP = frozenset({"error", "abort", "insufficient_system_resource", "cancelled", "canceled"})
    """Finish reasons of servers that gave up (OpenRouter, vLLM, DeepSeek).

    The model did not cause them, so a retry helps.
    """
    _MAX_TOKENS = 1 << 40

    def __init__(self, text_only: bool = False) -> None:
        """Begin an answer.

        With `text_only`, a raw prompt is continued, and choices have a text instead of a message.
        """
        self._text_only = text_only
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._finish_reason = ""
        self._calls = CallPieces()
        self._tokens_seen: deque[tuple[str, float]] = deque(maxlen=LAST_TOKENS)
        self._first_choices: Logprobs = ()
        self._usage: tuple[int, int] | None = None
        self.began = False
        """True if any piece has arrived."""

    @property
    def complete(self) -> bool:
        """Return True if the server said why the answer ended."""
        return bool(self._finish_reason)

    @property
    def has_logprobs(self) -> bool:
        """Return True if the server reported log-probabilities."""
        return bool(self._tokens_seen)

    @property
    def is_billed(self) -> bool:
        """Return True if the server has reported the number of tokens."""
        return self._usage is not None

    @property
    def written_tokens(self) -> int:
        """Return the approximate number of tokens written so far."""
        calls = sum(approximate_tokens(call.name + call.arguments) for call in self._calls.calls())
        return approximate_tokens("".join(self._content)) + approximate_tokens("".join(self._reasoning)) + calls

    def take(self, data: bytes, whole: bool = False) -> None:
        """Add one JSON object: a piece, or the whole answer with `whole`."""
        try:
            piece: Any = json.loads(data)
        except (ValueError, RecursionError):
            raise MalformedReply("not JSON") from None
        if not isinstance(piece, dict):
            raise MalformedReply("not a JSON object")
        if error := piece.get("error"):
            raise ErrorReply(_error_status(error), json.dumps({"error": error}))
        choices = piece.get("choices") or []
        if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
            raise MalformedReply("without a list of choices")
        part = "text" if self._text_only else "message" if whole else "delta"
        for choice in choices:
            if not choice.get("index"):  # Only one choice is requested.
                value = choice.get(part)
                self._add(choice, {"content": value} if self._text_only else value or {})
        self._usage = self._tokens(piece.get("usage")) or self._usage
        self.began = True

    def answer(self, request: ChatRequest, seconds: float) -> RawAnswer:
        """Return the finished answer. If the server did not report tokens, they are estimated."""
        content, reasoning, refusal = "".join(self._content), "".join(self._reasoning), "".join(self._refusal)
        reason = finish_reason(self._finish_reason)
        calls = self._calls.calls()
        # Text beside a tool call is not an answer, because the model waits for the tool. A call of an offered tool may
        # be cut like a text.
        if calls and not (request.tools and reason == "length"):
            reason = "tool_calls"
        if refusal:
            content, reason = refusal, "refusal"
        asked, written = self._usage or (request_tokens(request), self.written_tokens)
        return RawAnswer(
            content,
            reasoning,
            reason,
            prompt_tokens=asked,
            completion_tokens=written,
            seconds=seconds,
            estimated=self._usage is None,
            first_choices=self._first_choices,
            last_tokens=tuple(self._tokens_seen),
            calls=calls if request.tools else (),
        )

    def _add(self, choice: dict[str, Any], message: Any) -> None:
        if not isinstance(message, dict):
            raise MalformedReply("without a message")
        for pieces, names in (
            (self._content, ("content",)),
            # Names used by DeepSeek and vLLM, and by OpenRouter.
            (self._reasoning, ("reasoning_content", "reasoning")),
            (self._refusal, ("refusal",)),
        ):
            text = next((message[name] for name in names if message.get(name)), "")
            if isinstance(text, list):
                text = _joined_parts(text)
            if not isinstance(text, str):
                raise MalformedReply(f"{names[0]} is not text")
            pieces.append(text)
        tokens, tops = read_logprobs(choice.get("logprobs"))
        if tokens and not self._tokens_seen:
            self._first_choices = tops[0] if tops else ()
        self._tokens_seen.extend(tokens)
        self._calls.take(message)
        reason = choice.get("finish_reason") or ""
        if not isinstance(reason, str):
            raise MalformedReply("finish_reason is not text")
        if reason.lower() in self._GAVE_UP:
            raise ErrorReply(500, json.dumps({"error": f"it gave up ({reason})"}))
        self._finish_reason = reason[:40] or self._finish_reason

    def _tokens(self, usage: Any) -> tuple[int, int] | None:
        if not isinstance(usage, dict):
            return None
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
        # A bill with thousands of digits, which JSON allows, is ignored.
        if all(type(count) is int and 0 <= count < self._MAX_TOKENS for count in counts):
            return counts[0], counts[1]  # type: ignore[return-value]
        return None


class CallPieces:
    """The tool calls of an answer, built from the pieces of a stream or from one message."""

    def __init__(self) -> None:
        self._pieces: list[dict[str, str]] = []
        self._positions: dict[Any, int] = {}

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls so far."""
        return tuple(ToolCall(each["id"], each["name"], each["arguments"]) for each in self._pieces)

    def take(self, message: Mapping[str, Any]) -> None:
        """Add the calls of a message, or of a piece of one. Raises MalformedReply if they are not calls."""
        listed = message.get("tool_calls") or []
        if old := message.get("function_call"):  # The older form has one call.
            listed = [{"index": 0, "function": old}]
        if not isinstance(listed, list):
            raise MalformedReply("a tool call that cannot be read")
        for piece in listed:
            function = piece.get("function") if isinstance(piece, dict) else None
            if not isinstance(function, dict):
                raise MalformedReply("a tool call that cannot be read")
            self._add(piece.get("index"), piece.get("id") or "", function.get("name") or "", function.get("arguments"))

    def _add(self, index: Any, identifier: Any, name: Any, arguments: Any) -> None:
        if isinstance(arguments, dict):  # Some servers parse them.
            arguments = json.dumps(arguments)
        texts = {"id": identifier, "name": name, "arguments": arguments or ""}
        if not all(isinstance(text, str) for text in texts.values()) or not isinstance(index, int | None):
            raise MalformedReply("a tool call that cannot be read")
        # Without an index, a name or an id begins a call, and other pieces continue the last one.
        begins = bool(identifier or name) if index is None else index not in self._positions
        if begins or not self._pieces:
            self._pieces.append(texts)
            if index is not None:
                self._positions[index] = len(self._pieces) - 1
            return
        call = self._pieces[-1 if index is None else self._positions[index]]
        call["arguments"] += texts["arguments"]
        call["id"], call["name"] = call["id"] or texts["id"], call["name"] or texts["name"]


def _joined_parts(parts: list[Any]) -> str:
    """Return the text of a list of parts, which some servers send. Raises MalformedReply if a part is not text."""
    for part in parts:
        if not isinstance(part, dict) or not isinstance(part.get("text"), str):
            kind = part.get("type") if isinstance(part, dict) else None
            raise MalformedReply(
                f"content has a part of type {str(kind or 'unknown')[:40]}, but only text is supported"
            )
    return "".join(part["text"] for part in parts)


def _error_status(error: Any) -> int:
    for name in ("code", "status"):
        status = error.get(name) if isinstance(error, dict) else None
        if type(status) is int and 400 <= status < 600:
            return status
    return 500


# Messages of OpenAI, vLLM, llama.cpp, Ollama, DeepSeek, SGLang and Anthropic's gateway.
_TOO_LONG_MESSAGE = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum|max|available|model'?s) context|context (length|window|size)"
    r"|max_model_len|(prompt|input)( \w+){0,3} too long|too many (input )?tokens|input length .* exceeds",
    re.IGNORECASE,
)
_NO_MODEL_MESSAGE = re.compile(
    r"model_not_found|\bmodel\b.{0,120}\b(not found|does not exist|not exist)|(unknown|no such) model", re.IGNORECASE
)
NO_SCHEMA_MESSAGE = re.compile(r"response.?format|schema|structured.?output|grammar", re.IGNORECASE)
"""Messages of OpenAI, DeepSeek, Groq, Gemini and llama.cpp for a model without structured answers."""
_NO_TOOLS_MESSAGE = re.compile(
    r"(not|n't) support[^.]{0,40}(tool|function)|support tool|(tool|function)[^.]{0,60}(not|n't|un)[ -]?support"
    r"|tools?( \w+){0,2} requires|(unknown|unsupported|unrecognized|extra)[^.]{0,40}tools",
    re.IGNORECASE,
)
"""Messages of vLLM, llama.cpp, Ollama, OpenRouter and others for a model without tool calls."""
_REFUSED_SETTING_MESSAGE = re.compile(
    r"unsupported (parameter|value)|unrecognized request argument|unknown (parameter|field|argument)"
    r"|extra (inputs|fields) (are )?not permitted",
    re.IGNORECASE,
)
"""Messages about a setting that the API does not accept, from OpenAI's reasoning models and Mistral."""
_RATE_LIMIT_ATTEMPTS = 30
"""Number of attempts after a 429.

The server asks to come back later, so the deadline ends the attempts, not a count.
"""


def tools_refused(endpoint: Endpoint, model: str, status: int, body: str) -> RequestFailed | None:
    """Return the failure of a server that does not accept tools; None for any other error."""
    message = error_message(body)
    if (
        status not in (400, 404, 422, 500, 501)
        or _TOO_LONG_MESSAGE.search(body)
        or not _NO_TOOLS_MESSAGE.search(message)
    ):
        return None
    reason = (
        f"{endpoint.server} does not accept tool calls for {model} ({status}: {message}); give the setting calls=tags"
    )
    return RequestFailed(reason, again=False, kind="bad_request", for_all=True)


def answer_failure(endpoint: Endpoint, model: str, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
    """Return what an HTTP error instead of an answer means, for this question or for all of them."""
    failure = status_failure(endpoint, status, headers, body)
    if failure.for_all:
        return failure
    # 405 and 501 come from something that answers no questions at all.
    if status in (404, 405, 501) or (status in (400, 422) and _NO_MODEL_MESSAGE.search(error_message(body))):
        reason = f"{failure} (asked for model {model!r}; check that the endpoint has it and the base URL is right)"
        return RequestFailed(reason, again=False, kind="bad_request", for_all=True)
    if status in (400, 413, 422, 500) and _TOO_LONG_MESSAGE.search(body):  # llama.cpp sometimes answers 500.
        return RequestFailed(str(failure), again=False, kind="context_length")
    if status in (400, 422) and _REFUSED_SETTING_MESSAGE.search(error_message(body)):
        # Every request has the same settings.
        reason = f"{failure} (settings come from the LLM's card; api_style = 'reasoning' sends no temperature)"
        return RequestFailed(reason, again=False, kind="bad_request", for_all=True)
    if failure.kind == "rate_limit":
        failure.max_attempts = _RATE_LIMIT_ATTEMPTS
    return failure
