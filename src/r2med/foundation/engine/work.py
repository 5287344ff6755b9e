"""Run a function over items: in this process, or on a Ray cluster (`ray_engine`). Results do not depend on which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from r2med.foundation.store import Store

Item = TypeVar("Item")
Result = TypeVar("Result")
Key = Mapping[str, Any]
"""Everything beside the item that a result depends on: of a model its weights, precision, lengths and so on."""
Function = Callable[[Item, "Store"], tuple[Key, Result]]
"""Returns the key that this machine has, and the result. It is pickled, so it declares a model but holds no weights.

An artefact that it makes in the given store arrives in the store of the caller of `map`.
"""


@dataclass(frozen=True)
class WorkNeeds:
    """Where a function can run."""

    gpu: bool = False
    """True if it runs on a GPU, if there is one."""
    here: bool = False
    """True if it must run in this process, because it holds values that cannot be sent, or counts money."""


HERE = WorkNeeds(here=True)


class Engine(Protocol):
    """Runs a function in this process or on a cluster."""

    def map(
        self,
        function: Function[Item, Result],
        items: Iterable[Item],
        store: Store,
        needs: WorkNeeds,
        key: Key | None = None,
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result as soon as it is ready. Items are read when a worker has room for them.

        Raises UserError if a machine has another key than `key`, which is this machine's. None accepts any.
        """


class Threads:
    """Runs functions in this process, one item after the other, because each item uses all cores."""

    def map(
        self,
        function: Function[Item, Result],
        items: Iterable[Item],
        store: Store,
        needs: WorkNeeds,
        key: Key | None = None,
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with its result, in order."""
        for item in items:
            _, result = function(item, store)
            yield item, result


THREADS = Threads()
