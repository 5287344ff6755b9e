"""A conversation with a search agent, as a value, and what an agent is: functions from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from r2med.llm.contracts import FailureKind


@dataclass(frozen=True)
class Document:
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
class Said:
    """What a model wrote in one call, its reasoning joined to it, and what that took."""

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Ask:
    """Wait for the model to go on with the transcript."""


@dataclass(frozen=True)
class Read:
    """Wait for the model to read documents, in a call apart from the transcript."""

    prompt: str


@dataclass(frozen=True)
class Look:
    """Wait for documents."""

    query: str


@dataclass(frozen=True)
class Answered:
    """Over: the text that is to be searched."""

    text: str


@dataclass(frozen=True)
class Failed:
    """Over, without a text; the kinds are those of the chat layer's failures."""

    kind: FailureKind
    message: str


Step = Ask | Read | Look | Answered | Failed


@dataclass(frozen=True)
class Turn:
    """One turn of the model's, with all that followed from it."""

    text: str
    query: str = ""
    documents: tuple[Document, ...] | None = None
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

    def billed(self, said: Said) -> Turn:
        """Return the turn with what another call took added."""
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + said.prompt_tokens,
            completion_tokens=self.completion_tokens + said.completion_tokens,
            seconds=self.seconds + said.seconds,
        )


@dataclass(frozen=True)
class Conversation:
    """Where a conversation stands."""

    parts: tuple[Part, ...]
    wait: Step = field(default_factory=Ask)
    turns: tuple[Turn, ...] = ()
    search_off: bool = False
    """Whether the model is asked for the last time: it answers now or never."""
    shortened: bool = False
    """Whether the transcript was cut because it grew over the model's context."""

    @property
    def over(self) -> bool:
        """Whether nothing more is waited for."""
        return isinstance(self.wait, Answered | Failed)

    @property
    def searches(self) -> int:
        """How many searches were made."""
        return sum(turn.documents is not None for turn in self.turns)

    def said(self, said: Said, text: str, query: str = "") -> Conversation:
        """Return the conversation after a turn of the model's; `text` is what counts of what it wrote."""
        turn = Turn(text, query).billed(said)
        return replace(self, parts=(*self.parts, Part("model", text)), turns=(*self.turns, turn))

    def told(self, text: str, **turn: Any) -> Conversation:
        """Return the conversation after the model was told something; `turn` goes to its last turn."""
        return replace(self.noted(**turn), parts=(*self.parts, Part("user", text)), wait=Ask())

    def noted(self, **turn: Any) -> Conversation:
        """Return the conversation with something added to its last turn."""
        return replace(self, turns=(*self.turns[:-1], replace(self.turns[-1], **turn))) if self.turns else self

    def now(self, step: Step) -> Conversation:
        """Return the conversation waiting for something else."""
        return replace(self, wait=step)


class Agent(Protocol):
    """How an agent goes on. Nothing here asks or searches: whoever holds the conversation does."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn."""

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn. Of a query there is nothing here but its text."""

    def wrote(self, conversation: Conversation, said: Said) -> Conversation:
        """Return what follows from what the model wrote, in the transcript or about documents."""

    def found(self, conversation: Conversation, documents: tuple[Document, ...]) -> Conversation:
        """Return what follows from what a search found."""

    def too_long(self, conversation: Conversation) -> Conversation:
        """Return what follows when the transcript no longer fits the model's context."""
