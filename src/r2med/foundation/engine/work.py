"""Work that engines run on any machine: a value that can be sent, its items, and its needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from r2med.foundation.store import Store

Item = TypeVar("Item")
Result = TypeVar("Result")
Agreed = TypeVar("Agreed")


@dataclass(frozen=True)
class WorkNeeds:
    """Where work can run, and how many items may wait at one worker."""

    gpu: bool = False
    """True if the work runs on a GPU, if there is one."""
    here: bool = False
    """True if the work must run in this process, because it holds values that cannot be sent, or counts money."""
    ahead: int = 1
    """Number of items that wait at a worker besides the current one. They hide the transfer time and take memory."""


HERE = WorkNeeds(here=True)


class Work(ABC, Generic[Item, Result]):
    """A function for each item. It is pickled with its items, so it holds instructions and not loaded models."""

    @abstractmethod
    def __call__(self, item: Item, store: Store) -> Result:
        """Return the result for an item. An artefact made in `store` is copied to the caller's store."""

    def check(self) -> None:
        """Raise UserError if the machine that received this work would give other results."""


class Engine(Protocol):
    """Runs work in this process or on a cluster. Results do not depend on the engine."""

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], store: Store, needs: WorkNeeds
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result as soon as it is ready. Items are read when a worker has room for them."""

    def agreed(self, question: Callable[[], Agreed], needs: WorkNeeds) -> Agreed:
        """Return the common answer of all machines that could do such work. Raises UserError if they differ."""


class Threads:
    """Runs work in this process, one item after the other, because each item uses all cores."""

    def map(
        self, work: Work[Item, Result], items: Iterable[Item], store: Store, needs: WorkNeeds
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result, in order."""
        for item in items:
            yield item, work(item, store)

    def agreed(self, question: Callable[[], Agreed], needs: WorkNeeds) -> Agreed:
        """Return the answer of this machine."""
        return question()


THREADS = Threads()
