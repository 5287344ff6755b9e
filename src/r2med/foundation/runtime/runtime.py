"""Runtime: the one owner of everything that systems share while they work. `Setup` declares it, `Runtime` opens it.

Everything is opened on first use, shared by all systems and threads of the runtime, and closed with it. Two
runtimes in one process share nothing but the network: while one of them is offline, the whole process is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import lru_cache
from shlex import quote
from types import TracebackType
from typing import Any, Self, TypeVar

from r2med.foundation.core.errors import UserError, check_installed, unknown
from r2med.foundation.core.shared_objects import SharedObjects
from r2med.foundation.engine.work import THREADS, Engine
from r2med.foundation.net.budget import Budget
from r2med.foundation.net.offline import is_offline, offline
from r2med.foundation.runtime.setup import MOST_REPEATS, Setup
from r2med.foundation.store import Store, default_store

Value = TypeVar("Value")

MODELS_OF_A_SERVER = 64
"""Models that stay in memory where questions come one by one: no question waits for weights to be loaded again."""


class Runtime:
    """Owns the store, models, LLM clients, budget, engine and user objects of one `Setup`; use it in a `with` block."""

    def __init__(self, setup: Setup | None = None, **settings: Any) -> None:
        """Open nothing yet; `settings` are fields of `Setup`, in place of a setup."""
        if setup is not None and settings:
            raise TypeError("give a Setup or its fields, not both")
        self.setup = setup if setup is not None else Setup(**settings)
        self.models = SharedObjects(self.setup.models_kept)
        """Models with weights in memory, each with its lock; the least recently used is given up first."""
        self.warned: set[str] = set()
        """Servers on other machines that the user was warned about before texts were sent."""
        self._objects = SharedObjects()
        self._parts = SharedObjects()
        self._entered = ExitStack()
        self._store: Store | None = None  # of a view with another policy
        self._indexes: SharedObjects | None = None  # of a view for one search

    def __repr__(self) -> str:
        return f"Runtime({self.setup!r})"

    def __enter__(self) -> Self:
        self._entered.enter_context(self.network())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        finally:
            self._entered.close()

    def close(self) -> None:
        """Close everything that was opened, and release all models."""
        self._parts.clear()
        self._objects.clear()
        self.models.clear()

    def __reduce__(self) -> tuple[Callable[[Setup], Runtime], tuple[Setup]]:
        return _arrived, (self.setup,)

    def opened(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the shared object of a key. `make` creates it on first use; it is closed at the end."""
        return self._objects.get(key, make)

    def part(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what a stage opened for a key, such as an encoder. `make` may read the settings and the store.

        It is opened again for other settings and for another store, but not in another repeat: what depends on the
        repeat has it in its key. What saves data with the labels of the store has these labels in its key.
        """
        settings = self.setup.values_without("repeat", "store", "models_kept")
        return self._parts.get((key, settings, self.store.identity), make)

    def for_a_system(self) -> Runtime:
        """Return this runtime for one system, which opens its parts itself: a user may have trained a model since."""
        return self._view(_parts=SharedObjects())

    def index(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return what a stage opened to search a corpus. A server keeps it; a run keeps it for one search."""
        if not self.store.keeps_questions:
            return self.store.opened((key, self.setup, self.store.labels), make)
        return make() if self._indexes is None else self._indexes.get((key, self.setup), make)

    @contextmanager
    def one_search(self) -> Iterator[Runtime]:
        """Yield this runtime, in which all parts of a search share what is opened of a corpus, until the block ends."""
        if self._indexes is not None:
            yield self
            return
        indexes = SharedObjects()
        try:
            yield self._view(_indexes=indexes)
        finally:
            indexes.clear()

    def turn(self, key: Hashable) -> AbstractContextManager[object]:
        """Return the lock of a key, for work that two threads must not do at the same time."""
        return self._objects.turn(("turn", key))

    def network(self) -> AbstractContextManager[None]:
        """Return the block in which this runtime works. With `Setup.offline`, the process cannot connect elsewhere."""
        return offline() if self.setup.offline else nullcontext()

    @property
    def store(self) -> Store:
        """The store with its policy."""
        return self._store or self.setup.store or self.opened("store", default_store)

    @property
    def budget(self) -> Budget:
        """The budget in dollars for all requests together. A view with another budget counts on its own."""
        return self.opened(("budget", self.setup.budget), lambda: Budget(self.setup.budget))

    @property
    def engine(self) -> Engine:
        """The engine that runs models and indexing."""
        engine = self.setup.engine
        if not isinstance(engine, str):
            return engine
        local_only = self.setup.offline or is_offline()
        return self.opened(("engine", engine, local_only), lambda: open_engine(engine, local_only))

    def with_store(self, store: Store) -> Runtime:
        """Return this runtime over another store, or the same one with another policy; all else is shared with it."""
        return self._view(_store=store)

    def about(self, *datasets: str, model: str = "") -> Runtime:
        """Return this runtime for data of some datasets and a model, which get their labels in the store."""
        return self.with_store(self.store.about(*datasets, model=model))

    def fresh(self) -> Runtime:
        """Return this runtime over a view of its store that uses only what is made through this view."""
        return self.with_store(self.store.with_policy("fresh"))

    def answering(self) -> Runtime:
        """Return this runtime, over a live view of its store if the store cannot be written."""
        return self if self.store.is_writable else self.with_store(self.store.with_policy("live"))

    def serving(self, store: Store) -> Runtime:
        """Return this runtime for questions that come one by one; from now on it keeps every model in memory."""
        self.models.limit = max(self.models.limit or 0, MODELS_OF_A_SERVER)
        return self.with_store(store)

    def with_settings(self, **settings: Any) -> Runtime:
        """Return this runtime with other values in its setup; what is opened is shared with it."""
        return self._view(setup=self.setup.with_settings(**settings))

    def _view(self, **changes: Any) -> Runtime:
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__, **changes)
        return view


@contextmanager
def running(setup: Setup | Runtime | None = None, **settings: Any) -> Iterator[Runtime]:
    """Yield the runtime of a function: the caller's own, which stays open, or a new one that is closed at the end.

    `settings` are fields of Setup. Raises UserError if both are given.
    """
    if setup is not None and settings:
        raise UserError(f"{', '.join(settings)}: beside setup=, no other setting can be given; put it into the Setup")
    if setup is None:
        setup = Setup(**settings)
    if isinstance(setup, Runtime):
        with setup.network():
            yield setup
    else:
        with Runtime(setup) as runtime:
            yield runtime


def check_repeats(repeats: int) -> None:
    """Raise UserError for a number of runs that nobody can mean."""
    if not 1 <= repeats <= MOST_REPEATS:
        raise UserError(f"repeats must be from 1 to {MOST_REPEATS}, not {repeats}")


def repeated(runtime: Runtime, repeats: int) -> list[Runtime]:
    """Return the runtime in each of several repeats. One repeat is the runtime as it is.

    Raises UserError for another number than 1 to `MOST_REPEATS`.
    """
    check_repeats(repeats)
    return [runtime.with_settings(repeat=number) for number in range(repeats)] if repeats > 1 else [runtime]


@lru_cache(maxsize=4)
def _arrived(setup: Setup) -> Runtime:
    """Return the runtime of this worker process. Its models stay loaded for the next task."""
    return Runtime(setup)


def open_engine(name: str, local_only: bool = False) -> Engine:
    """Return the engine of a name: threads, ray or ray://HOST:PORT. It does not connect yet.

    With `local_only` a cluster with a node on another machine is refused before anything is sent to it.
    """
    if name == "threads":
        return THREADS
    if name != "ray" and not name.startswith("ray://"):
        raise unknown("engine", name, ["threads", "ray"], "threads, ray (here, or at RAY_ADDRESS) or ray://HOST:PORT")
    check_installed(f"engine (--engine {quote(name)})", ["ray"])
    from r2med.foundation.engine.ray_engine import RayEngine

    return RayEngine(name, local_only)
