"""A conversation with a search agent, as a value, and what an agent is: functions from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from r2med.llm.chat import FailureKind

WORDS = 512
"""Words that are shown of a document, as the benchmark has it for LameR: some are fifty pages long."""


@dataclass(frozen=True)
class Hit:
    """A document as an agent sees it; `contents` is title, line break, text."""

    id: str
    contents: str
    score: float


@dataclass(frozen=True)
class Part:
    """A piece of the transcript: what the model wrote, or what it was told (question, results, notices)."""

    role: Literal["user", "model"]
    text: str


@dataclass(frozen=True)
class Completion:
    """What a model wrote in one call, its reasoning joined to it, and what that took."""

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class AwaitModel:
    """Wait for the model to go on with the transcript."""


@dataclass(frozen=True)
class AwaitReading:
    """Wait for the model to read documents, in a call apart from the transcript."""

    prompt: str


@dataclass(frozen=True)
class AwaitSearch:
    """Wait for documents."""

    query: str


@dataclass(frozen=True)
class Answered:
    """Over: the text that is to be searched."""

    text: str
    cut: bool = False
    """Whether it reached the limit of tokens, and is kept up to its last whole sentence."""


@dataclass(frozen=True)
class Failed:
    """Over, without a text; the kinds are those of the chat layer's failures."""

    kind: FailureKind
    message: str


State = AwaitModel | AwaitReading | AwaitSearch | Answered | Failed


@dataclass(frozen=True)
class Turn:
    """One turn of the model's, with all that followed from it."""

    text: str
    query: str = ""
    documents: tuple[Hit, ...] | None = None
    """What was found; None where nothing was searched."""
    information: str = ""
    """What the model was shown of it."""
    analysis: str = ""
    """What it wrote when it read the documents, thoughts and all."""
    notice: str = ""
    """What it was told instead of results."""
    cut: bool = False
    """Whether some of the documents did not fit and were not read."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    def plus(self, completion: Completion) -> Turn:
        """Return the turn with what another call took added."""
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + completion.prompt_tokens,
            completion_tokens=self.completion_tokens + completion.completion_tokens,
            seconds=self.seconds + completion.seconds,
        )


@dataclass(frozen=True)
class Conversation:
    """A transcript, and what it waits for."""

    parts: tuple[Part, ...]
    state: State = field(default_factory=AwaitModel)
    turns: tuple[Turn, ...] = ()
    search_off: bool = False
    """Whether the model is asked for the last time: it answers now or never."""
    shortened: bool = False
    """Whether the transcript was cut because it grew over the model's context."""

    @property
    def over(self) -> bool:
        """Whether nothing more is waited for."""
        return isinstance(self.state, Answered | Failed)

    @property
    def searches(self) -> int:
        """How many searches were made."""
        return sum(turn.documents is not None for turn in self.turns)

    def with_turn(self, completion: Completion, text: str, query: str = "") -> Conversation:
        """Return the conversation after a turn of the model's; `text` is what counts of what it wrote."""
        turn = Turn(text, query).plus(completion)
        return replace(self, parts=(*self.parts, Part("model", text)), turns=(*self.turns, turn))

    def with_message(self, text: str, **turn: Any) -> Conversation:
        """Return the conversation after the model was told something; `turn` changes its last turn."""
        return replace(self.with_last_turn(**turn), parts=(*self.parts, Part("user", text)), state=AwaitModel())

    def with_last_turn(self, **changes: Any) -> Conversation:
        """Return the conversation with its last turn changed."""
        return replace(self, turns=(*self.turns[:-1], replace(self.turns[-1], **changes))) if self.turns else self

    def waiting_for(self, state: State) -> Conversation:
        """Return the conversation in another state."""
        return replace(self, state=state)

    def without_search(self, notice: str, shown: str) -> Conversation:
        """Return a conversation that outgrew its model's context, asked for the last time with the search off.

        A notice, as the model is `shown` it, stands where the results were that no longer fit. If that was tried
        before, the conversation has failed.
        """
        if self.shortened:
            return self.waiting_for(Failed("context_length", "the transcript does not fit the model's context"))
        parts = self.parts
        if len(parts) > 1 and parts[-1].role == "user":
            parts = (*parts[:-1], Part("user", shown))
        changed = replace(self.with_last_turn(notice=notice, information=""), parts=parts, state=AwaitModel())
        return replace(changed, search_off=True, shortened=True)


class Agent(Protocol):
    """How an agent goes on. Nothing here asks or searches: whoever holds the conversation does."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn."""

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn. Of a query there is nothing here but its text."""

    def on_completion(self, conversation: Conversation, completion: Completion) -> Conversation:
        """Return what follows from what the model wrote, in the transcript or about documents."""

    def on_documents(self, conversation: Conversation, documents: tuple[Hit, ...]) -> Conversation:
        """Return what follows from the documents of a search."""

    def on_overflow(self, conversation: Conversation) -> Conversation:
        """Return what follows when the transcript no longer fits the model's context."""


def not_done(completion: Completion) -> Failed | None:
    """Return the failure of a turn that the model did not end itself: it was refused, or stopped by something else."""
    reason = completion.finish_reason
    if reason == "refusal":
        words = " ".join(completion.text.split())[:200]
        return Failed("refused", f"the model declined to answer: {words}".rstrip(": "))
    if reason not in ("stop", "length"):
        return Failed("unfinished", f"the model ended its turn for another reason than being done ({reason})")
    return None


def no_answer(completion: Completion, what: str) -> Failed:
    """Return the failure of a conversation that ends without its answer: cut off, or done in another way."""
    if completion.finish_reason == "length":
        return Failed("truncated", f"{what}: it reached its limit of tokens")
    return Failed("no_marker", what)
