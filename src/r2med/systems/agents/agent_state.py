"""A conversation with a search agent, as a value, and what an agent is: functions from one state to the next.

A conversation that is over leaves a trace: what the agent did, turn by turn, fit for JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from r2med.foundation.core.search_steps import SearchStep
from r2med.models.llm.chat import Failure, Message, RawAnswer, ToolCall
from r2med.models.prompts.fitting import first_words

SHOWN_WORDS = 512
"""Number of words that are shown of a document, as in the benchmark's LameR. Some documents have fifty pages."""


@dataclass(frozen=True)
class Hit:
    """A document as an agent sees it. `contents` is title, line break, text."""

    id: str
    contents: str
    score: float


@dataclass(frozen=True)
class AwaitModel:
    """State: the model must continue the transcript."""


@dataclass(frozen=True)
class AwaitReading:
    """State: the model must read documents in a separate call."""

    prompt: str


@dataclass(frozen=True)
class AwaitSearch:
    """State: the conversation needs documents."""

    query: str
    k: int = 0
    """Number of documents that the model asked for, where it may say."""


@dataclass(frozen=True)
class Answered:
    """State: the conversation has ended with a text: one to search with, or the answer to the question."""

    text: str
    cut: bool = False
    """True if the text reached the token limit and is kept up to its last whole sentence."""
    confidence: float | None = None
    """How sure the agent is that its answer is right, from 0 to 1; None if it did not say."""
    cited: tuple[str, ...] = ()
    """The documents that the answer cites."""
    kept: tuple[str, ...] = ()
    """The documents that the agent names as relevant, the best first."""


@dataclass(frozen=True)
class Chosen:
    """State: the conversation has ended with the documents that the agent chose, the best first."""

    ids: tuple[str, ...]


State = AwaitModel | AwaitReading | AwaitSearch | Answered | Chosen | Failure
"""The state of a conversation, or its end. A failure is an end without a text and without a choice."""


@dataclass(frozen=True)
class AgentTurn:
    """One turn of the model, with its consequences."""

    text: str
    query: str = ""
    wanted: int = 0
    """Number of documents that the model asked for, where it may say. It is not in the trace."""
    documents: tuple[Hit, ...] | None = None
    """The search results; None if nothing was searched."""
    information: str = ""
    """The part of the results that the model was shown."""
    analysis: str = ""
    """The text that the model wrote about the documents, including its thoughts."""
    notice: str = ""
    """The message that the model got instead of results."""
    cut: bool = False
    """True if some documents did not fit and were not read."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    shown: tuple[str, ...] = ()
    """The documents whose text was in the conversation after this turn."""
    opened: tuple[str, ...] = ()
    """The documents that the model opened, or in which it looked for words."""
    status: str = ""
    """What became of a call of a tool: see `tools.Status`. Empty for agents without tools."""
    further: bool = False
    """True for a further call in the same turn of the model."""

    def plus(self, completion: RawAnswer) -> AgentTurn:
        """Return the turn with the cost of another call added."""
        return replace(
            self,
            prompt_tokens=self.prompt_tokens + completion.prompt_tokens,
            completion_tokens=self.completion_tokens + completion.completion_tokens,
            seconds=self.seconds + completion.seconds,
        )


@dataclass(frozen=True)
class Conversation:
    """A transcript of the model's texts and the messages to it, with the state of the conversation."""

    parts: tuple[Message, ...]
    state: State = field(default_factory=AwaitModel)
    turns: tuple[AgentTurn, ...] = ()
    search_off: bool = False
    """True if the model is called for the last time and must answer now."""
    shortened: bool = False
    """True if the transcript was cut because it grew beyond the model's context."""
    pending: tuple[ToolCall, ...] = ()
    """Calls of tools in the last turn that have no result yet."""

    @property
    def over(self) -> bool:
        """True if the conversation has ended."""
        return isinstance(self.state, Answered | Chosen | Failure)

    @property
    def model_turns(self) -> int:
        """The number of turns of the model. A turn may make several calls."""
        return sum(not turn.further for turn in self.turns)

    @property
    def searches(self) -> int:
        """The number of searches."""
        return sum(turn.documents is not None for turn in self.turns)

    def with_turn(self, completion: RawAnswer, text: str, query: str = "") -> Conversation:
        """Return the conversation after a turn of the model. `text` is the relevant part of the turn."""
        turn = AgentTurn(text, query).plus(completion)
        return replace(self, parts=(*self.parts, Message("assistant", text)), turns=(*self.turns, turn))

    def with_message(self, text: str, **turn: Any) -> Conversation:
        """Return the conversation after a message to the model. `turn` replaces its last turn."""
        return replace(self.with_last_turn(**turn), parts=(*self.parts, Message("user", text)), state=AwaitModel())

    def with_last_turn(self, **changes: Any) -> Conversation:
        """Return the conversation with its last turn changed."""
        return replace(self, turns=(*self.turns[:-1], replace(self.turns[-1], **changes))) if self.turns else self

    def waiting_for(self, state: State) -> Conversation:
        """Return the conversation in another state."""
        return replace(self, state=state)

    def without_search(self, notice: str, shown: str) -> Conversation:
        """Return a conversation that outgrew its model's context, asked for the last time with the search off.

        The notice replaces the results that no longer fit. `shown` is its form in the transcript. If this was already
        tried, the conversation has failed.
        """
        if self.shortened:
            return self.waiting_for(Failure("context_length", "the transcript does not fit the model's context"))
        parts = self.parts
        if len(parts) > 1 and parts[-1].role == "user":
            parts = (*parts[:-1], Message("user", shown))
        last = self.with_last_turn(notice=notice, information="", shown=())
        changed = replace(last, parts=parts, state=AwaitModel())
        return replace(changed, search_off=True, shortened=True)


class Agent(Protocol):
    """The rules by which an agent continues. It makes no calls and no searches: `agent_loop.converse` does."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a turn of the model."""

    def start(self, question: str) -> Conversation:
        """Return the conversation before its first turn. Only the text of the query is used."""

    def on_completion(self, conversation: Conversation, completion: RawAnswer) -> Conversation:
        """Return the conversation after a text of the model, in the transcript or about documents."""

    def on_documents(self, conversation: Conversation, documents: tuple[Hit, ...]) -> Conversation:
        """Return the conversation after the documents of a search."""

    def on_overflow(self, conversation: Conversation) -> Conversation:
        """Return the conversation after the transcript has grown beyond the model's context."""


def not_done(completion: RawAnswer) -> Failure | None:
    """Return the failure of a turn that the model did not end itself: it was refused or stopped."""
    reason = completion.finish_reason
    if reason == "refusal":
        words = " ".join(completion.content.split())[:200]
        return Failure("refused", f"the model declined to answer: {words}".rstrip(": "))
    if reason not in ("stop", "length"):
        return Failure("unfinished", f"the model ended its turn for another reason than being done ({reason})")
    return None


def no_answer(completion: RawAnswer, what: str) -> Failure:
    """Return the failure of a conversation that ends without an answer: cut off, or ended in another way."""
    if completion.finish_reason == "length":
        return Failure("truncated", f"{what}: it reached its limit of tokens")
    return Failure("no_marker", what)


TRACE_FORMAT = 1


def trace(
    conversation: Conversation,
    *,
    texts: bool = False,
    finds: Sequence[str] | None = None,
    steps: Collection[SearchStep] = (),
) -> dict[str, Any]:
    """Return the trace of a finished conversation. With `texts` it holds the text shown of each document.

    `finds` is the ranking that it gives; None if it gives a text. `steps` are those that an agent has which answers
    the question.
    """
    end = conversation.state
    return {
        "format": TRACE_FORMAT,
        "prompt": conversation.parts[0].content,
        "turns": [_turn(turn, texts) for turn in conversation.turns],
        "text": end.text if isinstance(end, Answered) else "",
        "failure": {"kind": end.kind, "message": end.message} if isinstance(end, Failure) else None,
        **({"chosen": list(end.ids)} if isinstance(end, Chosen) else {}),
        **({} if finds is None else {"finds": list(finds)}),
        **({"steps": _steps(conversation, steps), "confidence": _confidence(end)} if steps else {}),
        "total": totals([conversation]),
    }


def totals(conversations: Sequence[Conversation]) -> dict[str, float]:
    """Return the numbers of turns, searches, tokens and seconds of conversations."""
    turns = [turn for conversation in conversations for turn in conversation.turns]
    return {
        "turns": sum(conversation.model_turns for conversation in conversations),
        "searches": sum(conversation.searches for conversation in conversations),
        "prompt_tokens": sum(turn.prompt_tokens for turn in turns),
        "completion_tokens": sum(turn.completion_tokens for turn in turns),
        "seconds": sum(turn.seconds for turn in turns),
    }


def _steps(conversation: Conversation, steps: Collection[SearchStep]) -> dict[SearchStep, list[str]]:
    """Return step -> the documents that came so far, in the order in which they did."""
    end, turns = conversation.state, conversation.turns
    came: Mapping[SearchStep, Iterable[str]] = {
        "returned": (hit.id for turn in turns for hit in turn.documents or ()),
        "shown": (document for turn in turns for document in turn.shown),
        "opened": (document for turn in turns for document in turn.opened),
        "cited": end.cited if isinstance(end, Answered) else (),
        "kept": end.kept if isinstance(end, Answered) else (),
    }
    return {step: list(dict.fromkeys(documents)) for step, documents in came.items() if step in steps}


def _confidence(end: State) -> float | None:
    return end.confidence if isinstance(end, Answered) else None


def _turn(turn: AgentTurn, texts: bool) -> dict[str, Any]:
    documents = None if turn.documents is None else [_document(hit, texts) for hit in turn.documents]
    facts = asdict(turn)
    del facts["wanted"]
    optional = {name: value for name in ("shown", "opened", "status", "further") if (value := facts.pop(name))}
    optional |= {name: list(optional[name]) for name in ("shown", "opened") if name in optional}
    return {**facts, "documents": documents, **optional}


def _document(hit: Hit, text: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"id": hit.id, "score": hit.score}
    return {**document, "contents": first_words(hit.contents, SHOWN_WORDS)} if text else document
