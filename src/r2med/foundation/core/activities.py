"""Activities: events with which stages, LLMs, agents and readers say what they do. A trace is made of them.

Values are made by functions that are called only if a block listens, so that work without a listener costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from r2med.foundation.core.events import emit, listener_of

ActivityKind = Literal["CHAIN", "AGENT", "RETRIEVER", "RERANKER", "EMBEDDING", "EVALUATOR"]
"""Kinds of OpenInference. A chain is any activity that has no kind of its own."""
Facts = Mapping[str, str | bool | int | float]
"""Facts without a text of a question, a document or an LLM: ids, names, counts."""

MAX_DOCUMENTS = 20
"""Number of documents of a ranking that are listed. A run may have a thousand."""


@dataclass(frozen=True)
class Activity:
    """Something that takes time. What happens before it ends is a part of it."""

    name: str
    kind: ActivityKind = "CHAIN"
    facts: Facts = field(default_factory=dict)
    text: str = ""
    """What is asked."""
    texts: Sequence[str] = ()
    """What a model encodes."""
    depth: int = 0
    """Number of documents that are reranked."""
    topic: Hashable = None
    """What it is about, such as a query or an item. Others name this topic to be a part of it."""
    within: Hashable = None
    """The topic of the activity that it is a part of. Default: the innermost activity around it."""
    outermost: bool = False
    """True if it is no activity of its own inside another one."""


@dataclass(frozen=True)
class Together:
    """A stage that works on many queries together, with an activity for each query that is as long as the stage."""

    name: str
    parts: Sequence[Activity]


@dataclass(frozen=True)
class Apart:
    """Activities that take turns. Each lasts from the beginning of its first part to the end of its last part."""

    parts: Sequence[Activity]


@dataclass(frozen=True)
class Belonging:
    """What parts belong to inside a block: (query, item or request, its topic). A request may have several topics."""

    pairs: Sequence[tuple[Hashable, Hashable]]


class ActivityEvent:
    """Base class of what happens in activities."""


@dataclass(frozen=True)
class ActivityBegan(ActivityEvent):
    """A block began. What follows is inside it."""

    activity: Activity | Together | Apart | Belonging


@dataclass(frozen=True)
class ActivityEnded(ActivityEvent):
    """The innermost block ended. With an error, its work was not finished."""

    error: BaseException | None = None


class FailureReason(Protocol):
    """Why something failed."""

    @property
    def kind(self) -> str:
        """The kind of failure, as a word."""

    @property
    def message(self) -> str:
        """More about it. It may quote a text."""


@dataclass(frozen=True)
class ActivityResult(ActivityEvent):
    """What came out of the innermost activity, or of that of a topic."""

    topic: Hashable = None
    facts: Facts = field(default_factory=dict)
    text: str | None = None
    label: str = ""
    """A word of a scale."""
    ids: Sequence[str] | None = None
    """Ids of documents."""
    failure: FailureReason | str | None = None


class ListedDocument(NamedTuple):
    """A document of a ranking."""

    id: str
    score: float | None
    text: Callable[[], str]


Ranking = Sequence[ListedDocument] | FailureReason
"""The documents of a query, best first, or why there are none."""


@dataclass(frozen=True)
class DocumentsRanked(ActivityEvent):
    """The rankings of the queries of the innermost block, in their order. A reranking also had candidates."""

    rankings: Sequence[Ranking]
    candidates: Sequence[Ranking] = ()


@dataclass(frozen=True)
class LLMCalled(ActivityEvent):
    """An LLM answered a request, or the journal had its answer. Question and answer have the form of APIs."""

    request: Hashable
    model: str
    settings: Mapping[str, Any]
    question: Mapping[str, Any]
    answer: Mapping[str, Any] | FailureReason
    usage: Mapping[str, Any]
    finish_reason: str
    from_journal: bool


@contextmanager
def doing(activity: Callable[[], Activity | Together | Apart | Belonging]) -> Iterator[None]:
    """Say what the block does."""
    if listener_of(ActivityEvent) is None:
        yield
        return
    emit(ActivityBegan(activity()))
    try:
        yield
    except BaseException as error:
        emit(ActivityEnded(error))
        raise
    emit(ActivityEnded())


def belonging(pairs: Iterable[tuple[Hashable, Hashable]]) -> AbstractContextManager[None]:
    """Say to which topics parts belong inside the block, as pairs of `Belonging`."""
    return doing(lambda: Belonging(tuple(pairs)))


def happened(event: Callable[[], ActivityEvent]) -> None:
    """Say what happened in the innermost activity."""
    if listener_of(ActivityEvent) is not None:
        emit(event())
