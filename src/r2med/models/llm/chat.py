"""Chat models: each request gets a generation or a typed failure, never a string that represents an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol

from r2med.foundation.store.files import digest
from r2med.foundation.text.unicode import is_unicode, to_unicode

FailureKind = Literal[
    "timeout",  # No answer within the deadline, or a stalled connection.
    "connection",  # Refused, dropped or closed half-way.
    "rate_limit",  # Still limited after all attempts.
    "server",  # Still a server error after all attempts.
    "bad_request",  # 400, 404, 422. Asking again would not help.
    "auth",  # 401, 403.
    "context_length",  # The prompt does not fit.
    "invalid",  # The answer does not follow the protocol.
    "refused",  # The model or a filter refused to answer.
    "empty",  # No text, or only reasoning.
    "truncated",  # Cut at the token limit.
    "unfinished",  # Ended before it was finished, for example with a tool call.
    "no_marker",  # The marker of the final answer is missing.
    "budget",  # Not asked, because the budget was used up.
]

_FINISH_WORDS = {
    "stop": {"end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"},
    "length": {"max_tokens", "model_length", "max_output_tokens", "max_length"},
    "refusal": {"content_filter", "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"},
}
"""Words that servers use for the reasons why an answer ends (OpenAI, Anthropic, Together, Cohere, Mistral, Google)."""


def finish_reason(word: str) -> str:
    """Return a server's finish reason as "stop", "length" or "refusal".

    Any other word is returned unchanged and means that the model was not finished.
    """
    word = word.lower()
    return next((reason for reason, words in _FINISH_WORDS.items() if word in words), word)


FROM_THE_MODEL: frozenset[str] = frozenset({"refused", "empty", "truncated", "unfinished", "no_marker"})
"""Failures that are the model's answer. They are saved, and asked again only if the user requests it.

All other failures are tried again in the next run.
"""

SAVED_FAILURES: frozenset[str] = FROM_THE_MODEL | {"context_length"}
"""Failures that the journal saves. A prompt that was too long is followed by a shorter one, and a later run without
the server must send the same prompts."""


def _repair_texts(value: object) -> None:
    """Replace lone surrogates in the texts of what a server sent.

    UTF-8 cannot encode them, so one odd answer would block every file and request that quotes it. Answers of all
    protocols and of the journal become these values, so this is the one place for it.
    """
    for name, text in vars(value).items():
        if isinstance(text, str) and not is_unicode(text):
            object.__setattr__(value, name, to_unicode(text))


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool by the model. The arguments are its own text, which should be a JSON object."""

    id: str
    name: str
    arguments: str

    def __post_init__(self) -> None:
        _repair_texts(self)

    @property
    def body(self) -> dict[str, Any]:
        """The call in the form of APIs."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass(frozen=True)
class Message:
    """One turn of a conversation. The role "tool" is the result of a call."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Tool calls of the assistant. Each must be followed by a message with its result."""
    call_id: str = ""
    """The id of the call whose result this is."""

    @property
    def body(self) -> dict[str, Any]:
        """The message in the form of APIs, in valid Unicode."""
        body: dict[str, Any] = {"role": self.role, "content": to_unicode(self.content)}
        if self.calls:  # Beside calls there may be no text, and some servers refuse an empty one.
            body |= {"content": body["content"] or None, "tool_calls": [call.body for call in self.calls]}
        return {**body, "tool_call_id": self.call_id} if self.call_id else body


@dataclass(frozen=True)
class Sampling:
    """Settings for sampling tokens. None means that the setting is not sent, so the provider decides."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    """Texts that end an answer. Servers leave them out of the answer and do not say which one ended it."""


MAX_SEED = 2**31
"""Seeds of repeats are below this, because some servers read a seed as a signed integer of 32 bits."""


def repeat_seed(seed: int, repeat: int, sample: int = 0) -> int:
    """Return the seed of a sample in a repeat. Those of repeat 0 count up from the seed.

    Those of the other repeats are hashes. If they counted up too, a repeat would have the seeds of another's samples.
    """
    return int(digest([seed, repeat, sample]), 16) % MAX_SEED if repeat else seed + sample


@dataclass(frozen=True)
class ChatRequest:
    """One question: messages or a raw prompt. `sample` distinguishes several samples of the same question."""

    messages: tuple[Message, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    sample: int = 0
    prompt: str | None = None
    """Text that the model continues, without a chat template.

    Special tokens in it are read as special tokens. Leave out a token that opens every text (a BOS), because the
    backend adds it.
    """
    schema: str = ""
    """JSON schema of the answer as JSON text, or empty for any text. See `LLMCard.keeps_schema`."""
    top_logprobs: int = 0
    """Number of alternatives to each token that the answer reports with log-probabilities. 0: none."""
    tools: str = ""
    """The tools that the model may call, as the JSON text of a list of functions with their schemas; empty: none."""
    repeat: int = 0
    """Number of the repeat of the whole evaluation, from 0. The LLM sets it, so that callers need not know it."""

    def __post_init__(self) -> None:
        if bool(self.messages) == (self.prompt is not None):
            raise ValueError("a request must have either messages or a prompt, not both")

    @property
    def text(self) -> dict[str, Any]:
        """The question in the form of APIs: `messages` or `prompt`, in valid Unicode."""
        if self.prompt is not None:
            return {"prompt": to_unicode(self.prompt)}
        return {"messages": [each.body for each in self.messages]}

    @property
    def response_format(self) -> dict[str, Any]:
        """The schema of the answer in the form of APIs, or nothing if any text is allowed."""
        if not self.schema:
            return {}
        schema = {"name": "answer", "strict": True, "schema": json.loads(self.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    @property
    def tool_settings(self) -> dict[str, Any]:
        """The tools in the form of APIs, or nothing without tools."""
        if not self.tools:
            return {}
        return {"tools": [{"type": "function", "function": each} for each in json.loads(self.tools)]}

    @property
    def settings(self) -> dict[str, Any]:
        """Settings for sampling tokens, without those that the provider decides."""
        given = asdict(self.sampling) | {"stop": list(self.sampling.stop) or None}
        if self.sampling.seed is not None:
            # With the same seed, every sample would be the same answer.
            given["seed"] = repeat_seed(self.sampling.seed, self.repeat, self.sample)
        return {name: value for name, value in given.items() if value is not None}


Logprobs = tuple[tuple[str, float], ...]
"""Tokens with their log-probabilities."""

LAST_TOKENS = 16
"""Number of tokens at the end of an answer whose log-probabilities are saved.

A score is at the end of an answer. A whole chain of thought would fill the journal.
"""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What an answer or a failure cost."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    attempts: int = 1

    @property
    def usage(self) -> dict[str, Any]:
        """The fields of the cost, for another value with the same cost."""
        return {each.name: getattr(self, each.name) for each in fields(Usage)}


@dataclass(frozen=True)
class RawAnswer(Usage):
    """The answer of a backend before cleaning. It has `reasoning` only if the server returns it in a separate field."""

    content: str
    reasoning: str = ""
    finish_reason: str = "stop"
    """stop, length, refusal, tool_calls, or another word of the server. The model was finished only with "stop"."""
    estimated: bool = False
    """True if the tokens were estimated here because the server did not report them."""
    first_choices: Logprobs = ()
    """The most likely first tokens of the answer, if the request asked for them."""
    last_tokens: Logprobs = ()
    """The last tokens of the answer, if the request asked for log-probabilities."""
    calls: tuple[ToolCall, ...] = ()
    """The calls of tools, in their order. Their arguments may be malformed."""

    def __post_init__(self) -> None:
        _repair_texts(self)
        for name in ("first_choices", "last_tokens"):
            if tokens := getattr(self, name):
                object.__setattr__(self, name, tuple((to_unicode(token), value) for token, value in tokens))


@dataclass(frozen=True)
class Generation(Usage):
    """Text of a model: the cleaned answer, its reasoning, and the cost."""

    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    first_choices: Logprobs = ()
    """The most likely first tokens, where the request asked for them."""
    last_tokens: Logprobs = ()
    """The last tokens, where the request asked for log-probabilities."""


@dataclass(frozen=True)
class Failure(Usage):
    """Reason why there is no text, and the cost of the attempts."""

    kind: FailureKind
    message: str
    fits: float = 0.0
    """Share of a prompt that would fit, if the prompt was too long and the server said by how much. 0: not known."""

    def __post_init__(self) -> None:
        _repair_texts(self)

    @classmethod
    def of(cls, answer: RawAnswer | Generation, kind: FailureKind, message: str) -> Failure:
        """Return the failure for an answer, with the answer's cost."""
        return cls(kind, message, **answer.usage)


Ability = Literal["completions", "logprobs", "seed"]
"""What an API may offer besides chat: to continue a raw text, to report log-probabilities of tokens, a seed."""


class ChatModel(Protocol):
    """Anything that answers chat requests."""

    @property
    def lacks(self) -> Collection[Ability]:
        """What is known to be refused before anything is asked. A server may lack more."""

    @property
    def name(self) -> str:
        """Name of the LLM as a user types it."""

    def key(self) -> dict[str, Any]:
        """Return everything that an answer depends on, except the request: model name, cleaning, thinking, …"""

    def varies(self, temperature: float | None) -> bool:
        """Return True if the same question can get another answer in another repeat."""

    def about(self, *datasets: str) -> ChatModel:
        """Return this LLM for questions about some datasets. Saved answers get the labels of these datasets."""

    def complete(self, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[Generation | Failure]:
        """Answer every request, in order. Requests that were answered before are not asked again.

        With `keep_cut`, an answer that was cut at its token limit is kept up to its last whole sentence, and its
        `finish_reason` is "length". Such a passage can still be searched, but a cut list of scores is useless.
        """

    def answers(self, requests: Sequence[ChatRequest]) -> list[RawAnswer | Failure]:
        """Like `complete`, but return the model's text before cleaning, for callers that parse its reasoning.

        An answer that was cut at its token limit or refused is not a failure here. See its `finish_reason`.
        """


class Backend(Protocol):
    """Where an LLM runs: an endpoint, or llama.cpp in this process. It does not handle journals or cleaning."""

    is_local: bool
    """True if it runs on this machine. Asking again then costs only time."""
    lacks: Collection[Ability]
    """What is known to be refused before anything is asked."""

    def key(self) -> dict[str, Any]:
        """Return the backend's settings that answers depend on, but never a key or the address of a machine."""

    def varies(self, temperature: float | None) -> bool:
        """Return True if the same question can get another answer, with another seed or at another time."""

    def answer(self, requests: Iterable[ChatRequest], done: Callable[[int, RawAnswer | Failure], None]) -> None:
        """Answer all requests and call `done(number, answer)` as soon as each answer arrives, from any thread.

        `done` is called a second time if the bill of an answer arrives later. A request is taken from the iterable when
        it is about to be asked, and requests are numbered from 0 in this order. The method returns when all are
        answered. It raises only for errors that affect every request (no key, no such model).
        """
