"""Work that any machine can do: a value that travels, items that it is done with, and what it needs; engines do it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from r2med.store import Store

Item = TypeVar("Item")
Result = TypeVar("Result")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Needs:
    """Where work can be done, and how much of it may wait at one worker."""

    gpu: bool = False
    """On a GPU, if there is any."""
    here: bool = False
    """In this very process: it holds what cannot travel, or counts money."""
    ahead: int = 1
    """Items that wait at a worker beside the one it works on: they hide the way there, and take memory."""


HERE = Needs(here=True)


class Work(ABC, Generic[Item, Result]):
    """What is done with each item. It is pickled with its items, so it holds what to do and not what was loaded."""

    @abstractmethod
    def __call__(self, item: Item, store: Store) -> Result:
        """Return the result; an artefact that it makes in the store given to it ends in the caller's store."""

    def check(self) -> None:
        """Raise UserError if another machine, on which this has just arrived, would do it otherwise."""


class Engine(Protocol):
    """Does work: in this process, or on a cluster. Results do not depend on where."""

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], store: Store, needs: Needs
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result as soon as it is there; items are asked for when there is room for them."""

    def agreed(self, question: Callable[[], Answer], needs: Needs) -> Answer:
        """Return what all machines that would do such work answer. Raises UserError if they differ."""


class Threads:
    """This process: one item after the other, since each takes all cores by itself."""

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], store: Store, needs: Needs
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result, in their order."""
        for item in items:
            yield item, work(item, store)

    def agreed(self, question: Callable[[], Answer], needs: Needs) -> Answer:
        """Return the answer of this machine."""
        return question()


THREADS = Threads()
