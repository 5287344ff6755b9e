"""Chat models: requests, and for each a generation or a typed failure, never a string that stands for an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from r2med.text.unicode import to_unicode

FailureKind = Literal[
    "timeout",  # no answer within the deadline, or a connection that stalled
    "connection",  # refused, dropped or closed half-way
    "rate_limit",  # still limited after all attempts
    "server",  # still an error of the server's after all attempts
    "bad_request",  # 400, 404, 422: asking again would not help
    "auth",  # 401, 403
    "context_length",  # the prompt does not fit
    "invalid",  # an answer that is not what the protocol says
    "refused",  # the model or a filter declined
    "empty",  # nothing, or nothing but reasoning
    "truncated",  # cut at the token limit
    "unfinished",  # ended for another reason than being done, such as a call of a tool
    "no_marker",  # the final answer's marker never came
    "budget",  # not asked: the budget was used up
]

_FINISH = {
    "stop": {"end_turn", "stop_sequence", "eos", "eos_token", "complete", "completed"},
    "length": {"max_tokens", "model_length", "max_output_tokens", "max_length"},
    "refusal": {"content_filter", "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"},
}
"""What servers call the ways in which an answer ends (OpenAI, Anthropic, Together, Cohere, Mistral, Google)."""


def finish_reason(word: str) -> str:
    """Return a server's finish reason as "stop", "length" or "refusal", or as it is: then the model was not done."""
    word = word.lower()
    return next((reason for reason, words in _FINISH.items() if word in words), word)


FROM_THE_MODEL: frozenset[str] = frozenset({"refused", "empty", "truncated", "unfinished", "no_marker"})
"""Failures that are the model's answer: kept, and asked again only when told to. All others are tried again in the next
run."""


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; None leaves a setting to the provider, and out of the request."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    """Texts that end an answer. Servers leave the one they met out of it, and do not say which it was."""


@dataclass(frozen=True)
class ChatRequest:
    """One question: messages, or a raw prompt; `sample` tells several draws for the same question apart."""

    messages: tuple[Message, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    sample: int = 0
    prompt: str | None = None
    """Text that the model is to continue, without a chat template. Special tokens written in it count as such; one
    that opens every text of the model's (a BOS) is put before it by the backend and is to be left out here.
    """
    schema: str = ""
    """The JSON schema that the answer has to keep, as JSON; empty for any text. See `LLMCard.keeps_schema`."""
    top_logprobs: int = 0
    """How many alternatives to a token the answer reports with their log-probabilities; 0: none are asked for."""

    def __post_init__(self) -> None:
        if bool(self.messages) == (self.prompt is not None):
            raise ValueError("a request has messages or a prompt, one of them and not both")

    @property
    def text(self) -> dict[str, Any]:
        """What is asked as APIs take it: `messages` or `prompt`, in whole Unicode."""
        if self.prompt is not None:
            return {"prompt": to_unicode(self.prompt)}
        return {"messages": [{"role": each.role, "content": to_unicode(each.content)} for each in self.messages]}

    @property
    def response_format(self) -> dict[str, Any]:
        """The schema of the answer as APIs take it; nothing where any text will do."""
        if not self.schema:
            return {}
        schema = {"name": "answer", "strict": True, "schema": json.loads(self.schema)}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    @property
    def settings(self) -> dict[str, Any]:
        """How tokens are drawn, without what is left to the provider."""
        given = asdict(self.sampling) | {"stop": list(self.sampling.stop) or None}
        if self.sampling.seed is not None:
            given["seed"] = (
                self.sampling.seed + self.sample
            )  # the same seed would draw the same answer for every sample
        return {name: value for name, value in given.items() if value is not None}


Logprobs = tuple[tuple[str, float], ...]
"""Tokens with their log-probabilities."""

LAST_TOKENS = 16
"""Tokens at the end of an answer whose log-probabilities are kept. A score is written there; a whole chain of thought
would fill the journal.
"""


@dataclass(frozen=True)
class RawAnswer:
    """What a backend returned, before cleaning; `reasoning` only where the server gives it in a field of its own."""

    content: str
    reasoning: str = ""
    finish_reason: str = "stop"
    """stop, length, refusal, or whatever else the server said; only with "stop" the model was done."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    attempts: int = 1
    estimated: bool = False
    """Whether the tokens were counted here, roughly, because the server did not say."""
    first_choices: Logprobs = ()
    """The most likely first tokens of the answer, where the request asked for them."""
    last_tokens: Logprobs = ()
    """The last tokens of the answer, where the request asked for log-probabilities."""


@dataclass(frozen=True)
class Generation:
    """What a model wrote: the cleaned answer, its reasoning apart from it, and what it took."""

    text: str
    reasoning: str = ""
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    first_choices: Logprobs = ()
    """The most likely first tokens, where the request asked for them."""
    last_tokens: Logprobs = ()
    """The last tokens, where the request asked for log-probabilities."""


@dataclass(frozen=True)
class Failure:
    """Why there is no text; what was used up on the way counts all the same."""

    kind: FailureKind
    message: str
    attempts: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, answer: RawAnswer | Generation, kind: FailureKind, message: str) -> Failure:
        """Return the failure that an answer is, with what it took."""
        attempts = answer.attempts if isinstance(answer, RawAnswer) else 1
        return cls(kind, message, attempts, answer.prompt_tokens, answer.completion_tokens, answer.seconds)


class ChatModel(Protocol):
    """Anything that answers."""

    @property
    def name(self) -> str:
        """The LLM's name as one types it."""

    def describe(self) -> dict[str, Any]:
        """Return all that an answer depends on besides the request: provider's model name, cleaning, thinking, …"""

    def unanswered(self, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[ChatRequest]:
        """Return the distinct requests that `complete` would ask; nothing is asked."""

    def complete(self, requests: Sequence[ChatRequest], *, keep_cut: bool = False) -> list[Generation | Failure]:
        """Answer every request, in their order. What was answered before is not asked again.

        With `keep_cut`, an answer that was cut at its token limit is one up to its last whole sentence, and its
        `finish_reason` is "length": a passage is worth searching then, a list of scores is worth nothing.
        """

    def answers(self, requests: Sequence[ChatRequest]) -> list[RawAnswer | Failure]:
        """Like `complete`, but return what the model wrote before cleaning: for those who parse its reasoning.

        An answer that was cut at its token limit or declined is no failure here: see its `finish_reason`.
        """


class Backend(Protocol):
    """Where an LLM runs: an endpoint, or llama.cpp in process. Knows nothing of journals or cleaning."""

    is_local: bool
    """Whether it runs on this machine: asking again costs nothing but time."""

    def describe(self) -> dict[str, Any]:
        """Return what answers depend on here (never a key or a machine's address)."""

    def answer(self, requests: Iterable[ChatRequest], done: Callable[[int, RawAnswer | Failure], None]) -> None:
        """Answer all requests, calling `done(number, answer)` for each as soon as it is there, from any thread;
        once more if its bill comes later.

        A request is taken from the iterable when it is about to be asked, and numbered from 0 as it is taken. Returns
        when all are done. Raises only for what makes every request pointless (no key, no such model).
        """
