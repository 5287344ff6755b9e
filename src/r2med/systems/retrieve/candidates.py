"""Run files as retrievers: the first stage of another system, for our rerankers or for fusion."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.data.runs.run import Run, on_corpus
from r2med.data.runs.run_file import require_run_file
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.core.spec import decoded, encoded, typed_path
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store.file_digests import file_digest
from r2med.systems.retrieve.retriever import Searched, SearchQuery

RUN_PREFIX = "run:"
RUN_FILE_ENDINGS = (".trec", ".trec.gz", ".run", ".run.gz", ".txt", ".txt.gz")


class Candidates(Stage, kind="retrieve"):
    """Use the results of another system: a TREC run, or a folder with one run for each dataset (run:PATH)."""

    @classmethod
    def at(cls, path: Path) -> Candidates:
        """Return the stage for a path. Characters with a meaning in the grammar of systems are percent-encoded."""
        return cls(name=RUN_PREFIX + encoded(str(path)))

    @property
    def path(self) -> Path:
        """Path of the run or the folder. If a path exists exactly as typed, it is used as typed."""
        return Path(decoded(self.name.removeprefix(RUN_PREFIX)))

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return that a file is read."""
        return [Needs(str(self), note="reads an existing run")]

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return the digest of the file. The name of the file does not affect a score."""
        file = self.file(dataset)
        require_run_file(file)
        return {"stage": "run", "sha256": file_digest(file, runtime.store)}

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k best documents of each query. A query that is not in the run gets no documents.

        Raises UserError for a question of its own, because a run has rankings only for its own queries.
        """
        path = self.file(dataset)
        if not runtime.store.keeps_questions:
            raise UserError(f"{path} has rankings only for its own queries; it cannot search for another question")
        asked = [query.query.id for query in queries]
        return Searched(on_corpus(_read(path, asked), asked, dataset.corpus, k, path))

    def file(self, dataset: Dataset) -> Path:
        """Return the run file of one dataset. Raises UserError if a folder has no run or several runs for it."""
        path = typed_path(str(self.path))
        if not path.is_dir():
            return path
        folder = path.joinpath(*dataset.name.split("/"))
        beside = [folder.with_name(folder.name + ending) for ending in RUN_FILE_ENDINGS]
        inside = [file for ending in RUN_FILE_ENDINGS for file in sorted(folder.glob(f"*{ending}"))]
        files = [file for file in (*beside, *inside) if file.is_file()]
        if len(files) != 1:
            count = f"{len(files)} runs" if files else "no run"
            raise UserError(
                f"{self.path} has {count} for {dataset.name}; add {dataset.name}.trec, or give the path of one file"
            )
        return files[0]


def _read(path: Path, asked: Sequence[str]) -> Run:
    """Return the rankings of a run file. All queries and documents of the run must exist in the dataset."""
    file = typed_path(str(path))
    run, known = Run.read(file), set(asked)
    if known.isdisjoint(run.queries) or not known.issuperset(run.queries):
        run = Run.read(file, encoded=True)  # The run was written by r2med and has ids with white space.
    if not run.queries:
        raise UserError(f"{path} is empty: there is nothing to rerank")
    if unknown := [query for query in run.queries if query not in known]:
        raise UserError(
            f"{path} has queries that are not in the dataset "
            f"({len(unknown):,} of {len(run.queries):,}), such as {unknown[0]!r}; is it a run of this dataset?"
        )
    return run
