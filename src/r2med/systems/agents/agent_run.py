"""The run of another agent as a retriever: its files in the form of BrowseComp-Plus, and what it answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.core.spec import decoded, typed_path
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Bound, Stage
from r2med.foundation.store import Store
from r2med.foundation.store.file_digests import files_digest
from r2med.foundation.text.plurals import counted
from r2med.systems.agents.agent_run_files import AgentRunFolder, trace_of_file
from r2med.systems.retrieve.retriever import Searched, Searcher, SearchQuery, SearchReport

AGENT_RUN_PREFIX = "agent-run:"
UNKNOWN_MODEL = "unknown"


class AgentRun(Stage, kind="retrieve"):
    """Use the files of another agent in the form of BrowseComp-Plus (agent-run:FOLDER).

    The folder may have a folder for each dataset.
    """

    @property
    def path(self) -> Path:
        """Path of the folder."""
        return typed_path(decoded(self.name.removeprefix(AGENT_RUN_PREFIX)))

    def folder(self, dataset: Dataset) -> Path:
        """Return the folder of one dataset. Raises UserError if it has no run files."""
        inside = self.path.joinpath(*dataset.name.split("/"))
        folder = inside if inside.is_dir() else self.path
        if not any(folder.glob("*.json")):
            raise UserError(f"{folder} has no run files of an agent (*.json, in the form of BrowseComp-Plus)")
        return folder

    def read(self, dataset: Dataset, store: Store) -> AgentRunFolder:
        """Return the run files of one dataset. Raises UserError if there are none."""
        return AgentRunFolder.read(self.folder(dataset))

    def files_key(self, dataset: Dataset, store: Store) -> str:
        """Return a digest of the files."""
        folder = self.folder(dataset)
        return files_digest((file for file in folder.glob("*.json") if file.is_file()), folder, store)

    def place(self, dataset: Dataset) -> str:
        """Return where the files are, for messages."""
        return str(self.folder(dataset))

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return a plan which says that files are read."""
        return [Plan(str(self), "reads the files of another agent; nothing is searched or asked", seconds=0.0)]

    def bind(self, runtime: Runtime) -> AgentRunRetriever:
        """Return the retriever. It depends only on the files."""
        return AgentRunRetriever(self, runtime.store)


@dataclass(frozen=True)
class AgentRunRetriever(Bound[AgentRun]):
    """Finds the files of a dataset."""

    store: Store
    """Remembers the digests of the files."""

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return the digest of the files."""
        return {"stage": "agent-run", "sha256": self.stage.files_key(dataset, self.store)}

    @property
    def is_replayed(self) -> bool:
        """True: the traces come with every search, so a stored ranking is not enough."""
        return True

    def index(self, dataset: Dataset, store: Store) -> AgentRunSearcher:
        """Return a searcher that looks up what the agent returned."""
        return AgentRunSearcher(self.stage.place(dataset), self.stage.read(dataset, self.store), dataset)


@dataclass(frozen=True)
class AgentRunSearcher(Searcher):
    """Looks up what an agent found for the queries of one dataset."""

    place: str
    read: AgentRunFolder
    dataset: Dataset

    def live(self) -> AgentRunSearcher:
        """Raise UserError, because an agent's files are about its own questions."""
        raise UserError(f"{self.place} has the answers to its own questions; it cannot search for another one")

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the documents that the agent's searches returned, in the order of the file."""
        read, corpus = self.read, self.dataset.corpus
        hits, traces = [], {}
        for each in queries:
            query = each.query.id
            trace = trace_of_file(read.by_query.get(query), read.search_steps, corpus)
            rows = corpus.rows(trace["steps"].get("returned", []))
            rows = rows[rows >= 0][:k].astype(np.int32)
            hits.append((rows, np.arange(len(rows), 0, -1, dtype=np.float32)))
            traces[query] = (trace,)
        asked = [each.query.id for each in queries]
        report = SearchReport(traces=traces, notices=tuple(self._notices(read, asked)))
        return Searched(Run.ranked(asked, hits, corpus), report=report)

    def _notices(self, read: AgentRunFolder, asked: Sequence[str]) -> list[str]:
        missing = sum(query not in read.by_query for query in asked)
        unknown = [query for query in read.by_query if query not in set(asked)]
        again = len(read.files) - len(read.by_query)
        lost = read.unreadable
        lines = [
            (missing, f"{missing:,} of {len(asked):,} questions have no file and count as wrong"),
            (len(unknown), f"{len(unknown):,} files are about other questions, such as {(unknown or [''])[0][:60]!r}"),
            (
                again,
                f"{counted(again, 'file')} are about a question that an earlier file is about; the first one counts",
            ),
            (len(lost), f"{len(lost):,} files cannot be read, such as {(lost or [''])[0]}"),
        ]
        return [f"{self.place}: {line}" for count, line in lines if count]
