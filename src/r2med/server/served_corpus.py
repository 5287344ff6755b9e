"""A corpus with a retriever that is ready to search it for the server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.data.dataset import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.text.plurals import counted
from r2med.server.refusals import HTTPError

if TYPE_CHECKING:
    from r2med.data.corpus import Corpus
    from r2med.data.dataset import Dataset
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.stages import Stage
    from r2med.foundation.store import Store
    from r2med.systems.agents.agent_state import Hit
    from r2med.systems.system.system import LiveSystem


log = logging.getLogger("r2med")

FileState = tuple[int, int, int]
"""Size, time of the last change and inode of a file."""


@dataclass(frozen=True)
class DataWatch:
    """The files that a server read when it started, and their states."""

    dataset: str
    states: tuple[tuple[Path, FileState | None], ...] = ()
    folder: Path | None = None
    """The folder of the dataset, if a user named one."""

    @classmethod
    def of(cls, dataset: Dataset, store: Store) -> DataWatch:
        """Watch the copy of the documents in the store, and the folder if a user named one."""
        kept = store.root / "corpus" / dataset.corpus.fingerprint
        files = [*kept.glob("*.arrow"), *_files(dataset.own_folder)]
        return cls(dataset.name, tuple((path, _state(path)) for path in sorted(files)), dataset.own_folder)

    @property
    def is_changed(self) -> bool:
        """True if a file was changed or removed after the server had started."""
        return any(_state(path) != state for path, state in self.states)

    @property
    def is_updated(self) -> bool:
        """True if the user's folder has other files than before. Texts that were only cleared are not read again."""
        return any(_state(path) != state for path, state in self.states if path.parent in self._folders)

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self.folder, self.folder / "qrels") if self.folder and self.folder.is_dir() else ()


def _files(folder: Path | None) -> list[Path]:
    """Return the files of a dataset folder. Judgements may be in a folder inside it."""
    if folder is None:
        return []
    return [path for pattern in ("*", "qrels/*") for path in folder.glob(pattern) if path.is_file()]


def _state(path: Path) -> FileState | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


@dataclass(frozen=True)
class ServedCorpus:
    """A dataset, the retriever that searches its corpus, and the live runtime in which it is open."""

    searched: Dataset
    stage: Stage
    runtime: Runtime
    data: DataWatch = field(default_factory=lambda: DataWatch(""))
    """The files that were read, which are checked before every answer."""

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self.searched.name

    @property
    def corpus(self) -> Corpus:
        """The documents."""
        return self.searched.corpus

    @property
    def retriever(self) -> str:
        """The name of the retriever."""
        return str(self.stage)

    def search(self, queries: Sequence[str], k: int) -> list[tuple[Hit, ...]]:
        """Return the k best documents of each query, best first. No document is excluded for any query."""
        from r2med.data.dataset import Query
        from r2med.systems.agents.sources import hits_of
        from r2med.systems.retrieve.retriever import SearchQuery
        from r2med.systems.retrieve.stored_search import stored_search

        asked = [SearchQuery(Query(str(i), text)) for i, text in enumerate(queries)]
        return hits_of(stored_search(self.stage, self.searched, asked, k, self.runtime).run, self.corpus)


Reopen = Callable[[], tuple[ServedCorpus, Sequence["LiveSystem"]]]


class ServedData:
    """The corpus and the systems that a server searches now. After an update they are opened again."""

    def __init__(self, corpus: ServedCorpus, systems: Sequence[LiveSystem] = (), reopen: Reopen | None = None) -> None:
        self.corpus = corpus
        self.systems = systems
        self._reopen = reopen
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="open")
        self._opening: asyncio.Future[None] | None = None

    @property
    def is_opening(self) -> bool:
        """True if changed data are being opened now."""
        return self._opening is not None and not self._opening.done()

    async def check(self) -> None:
        """Open changed data before a question is answered. All questions wait for one opening.

        Raises HTTPError if the data were removed from the cache, or cannot be opened.
        """
        watch = self.corpus.data
        if not watch.is_changed:
            return
        if self._reopen is None or not watch.is_updated:
            raise HTTPError(503, f"the data of {watch.dataset} were changed or removed: start the server again")
        if self._opening is None or self._opening.done():
            self._opening = asyncio.get_running_loop().run_in_executor(self._thread, self._open, self._reopen)
        try:
            await asyncio.shield(self._opening)
        except Exception as error:
            log.warning("the changed data of %s cannot be opened: %s", watch.dataset, error)
            detail = f"the data of {watch.dataset} were changed and cannot be opened; the server's log says why"
            raise HTTPError(503, detail) from None

    def _open(self, reopen: Reopen) -> None:
        self.corpus, self.systems = reopen()
        log.info(
            "%s was changed and is opened again: %s", self.corpus.dataset, counted(len(self.corpus.corpus), "document")
        )


def open_served_corpus(dataset: Dataset, spec: str | Stage, runtime: Runtime, store: Store) -> ServedCorpus:
    """Index the corpus of a dataset or open its index, and load the models. A live store does this only once.

    Raises UserError if the spec is not a single retriever.
    """
    from r2med.foundation.runtime.stages import Stage

    stage = spec if isinstance(spec, Stage) else _only_retriever(spec, runtime)
    watch = DataWatch.of(dataset, store)  # before hours of encoding, in which the data may be changed again
    served = ServedCorpus(dataset, stage, runtime.with_store(store.with_policy("live")), watch)
    served.search(["warm up"], 1)  # loads the weights now, so that no client has to wait
    return served


def open_served(
    dataset: Dataset, specs: Sequence[str], retriever: str, runtime: Runtime, store: Store
) -> tuple[ServedCorpus, tuple[LiveSystem, ...]]:
    """Return the served corpus, and the systems of the specs. Parts that they share are opened once.

    The default retriever is that of the first system, or BM25 if there is no system. Of one that asks an LLM, it is the
    retriever inside. The retriever is also one of the systems, so that the others can be compared with it.
    """
    from r2med.systems.system.system import System

    runtime = runtime.with_store(store.with_policy("live"))
    systems = [System.parse(spec, runtime) for spec in specs]
    if systems and not retriever:
        stage = without_llm(systems[0].retriever)
    else:
        stage = _only_retriever(retriever or "bm25", runtime)
    served = open_served_corpus(dataset, stage, runtime, runtime.store)
    named = {system.name: system for system in (*systems, System(stage, runtime=runtime))}
    return served, tuple(system.live(dataset) for system in named.values())


def without_llm(retriever: Stage) -> Stage:
    """Return a retriever, or the first one inside it if it asks an LLM, which every client of /retrieve would pay."""
    from r2med.foundation.runtime.stages import with_nested

    while any(each.takes == "llm" for each in with_nested(retriever)):
        retriever = next(each for each in with_nested(retriever) if each.kind == "retrieve" and each is not retriever)
    return retriever


def _only_retriever(spec: str, runtime: Runtime) -> Stage:
    """Return the stage of a spec. Raises UserError if the spec is not a single retriever without an LLM."""
    from r2med.foundation.core.names import known_names
    from r2med.foundation.core.spec import parse
    from r2med.foundation.runtime.stages import retriever_of, with_nested
    from r2med.systems.system.declared_system import completed_call

    stages = parse(spec)
    if len(stages) > 1:
        raise UserError(f"{spec!r} has {len(stages)} stages: this needs a single retriever, such as bm25+minilm")
    if (name := stages[0][0].name) in known_names("expand"):
        raise UserError(f"{name} is an expansion: this needs a single retriever, such as bm25+minilm")
    stage = retriever_of([completed_call(call, runtime.setup) for call in stages[0]])
    if any(each.takes == "llm" for each in with_nested(stage)):
        raise UserError(f"{stage} asks an LLM, which every search would pay for: this needs a retriever without one")
    return stage
