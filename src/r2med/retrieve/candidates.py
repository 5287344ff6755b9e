"""A run file as a retriever: somebody else's first stage, for our rerankers or for fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from r2med.core.errors import UserError
from r2med.core.spec import decoded, encoded, typed_path
from r2med.core.stage_plan import PlannedData, StagePlan
from r2med.core.stages import Bound, Stage
from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.retrieve.retriever import Searched, SearchQuery
from r2med.retrieve.run import Run
from r2med.retrieve.run_file import require_run_file
from r2med.runtime.runtime import Runtime
from r2med.store import Store
from r2med.store.files import sha256

PREFIX = "run:"
ENDINGS = (".trec", ".trec.gz", ".run", ".run.gz", ".txt", ".txt.gz")


class Candidates(Stage, kind="retrieve"):
    """Take what another system found: a TREC run, or a folder that has one for each dataset (run:PATH)."""

    @classmethod
    def at(cls, path: Path) -> Candidates:
        """Return those of a path; what the grammar of systems would take for its own is percent-encoded."""
        return cls(name=PREFIX + encoded(str(path)))

    @property
    def path(self) -> Path:
        """Where the run or the folder is; a path that is there as it was typed is meant as it was typed."""
        return Path(decoded(self.name.removeprefix(PREFIX)))

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[StagePlan]:
        """Return that a file is read."""
        return [StagePlan(str(self), "reads a run that is there; nothing is indexed or encoded", seconds=0.0)]

    def bind(self, runtime: Runtime) -> CandidateRetriever:
        """Return the retriever: it depends on nothing but the files."""
        return CandidateRetriever(self)

    def file(self, dataset: Dataset) -> Path:
        """Return the run of one dataset. Raises UserError if a folder has none, or several."""
        path = typed_path(str(self.path))
        if not path.is_dir():
            return path
        folder = path.joinpath(*dataset.name.split("/"))
        beside = [folder.with_name(folder.name + ending) for ending in ENDINGS]
        inside = [file for ending in ENDINGS for file in sorted(folder.glob(f"*{ending}"))]
        files = [file for file in (*beside, *inside) if file.is_file()]
        if len(files) != 1:
            count = f"{len(files)} runs" if files else "no run"
            raise UserError(
                f"{self.path} has {count} for {dataset.name}: one is needed, as {dataset.name}.trec, or name a file"
            )
        return files[0]


@dataclass(frozen=True)
class CandidateRetriever(Bound[Candidates]):
    """Finds the run of a dataset and searches in it."""

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return the hash of the file: what it is called has no part in a score."""
        file = self.stage.file(dataset)
        require_run_file(file)
        return {"stage": "run", "sha256": sha256(file)}

    def index(self, dataset: Dataset, store: Store) -> CandidateSearcher:
        """Return a searcher that looks rankings up."""
        return CandidateSearcher(self.stage.file(dataset), dataset.corpus)


class CandidateSearcher:
    """Looks up what a run found; all that it names has to be there."""

    def __init__(self, path: Path, corpus: Corpus) -> None:
        self._path = path
        self._corpus = corpus

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best of each query; one that the run does not have found nothing."""
        asked = [query.query.id for query in queries]
        run = self._read(asked)
        return Searched(on_corpus(run, asked, self._corpus, k, self._path))

    def live(self) -> CandidateSearcher:
        """Raise UserError: a run has the rankings of its own queries and of no other."""
        raise UserError(f"{self._path} holds the rankings of its queries: it cannot search for any other question")

    def _read(self, asked: Sequence[str]) -> Run:
        path = typed_path(str(self._path))
        run, known = Run.read(path), set(asked)
        if known.isdisjoint(run.queries) or not known.issuperset(run.queries):
            run = Run.read(path, encoded=True)  # written by us, with ids that hold white space
        if not run.queries:
            raise UserError(f"{self._path} is empty: there is nothing to rerank")
        if unknown := [query for query in run.queries if query not in known]:
            raise UserError(
                f"{self._path} names queries that the dataset does not have "
                f"({len(unknown):,} of {len(run.queries):,}), such as {unknown[0]!r}: is it a run over this dataset?"
            )
        return run


def on_corpus(run: Run, asked: Sequence[str], corpus: Corpus, k: int, source: object) -> Run:
    """Return the k best documents of each query as rows of a corpus; a query that the run does not have found nothing.

    Raises UserError that names the source if a document is not in the corpus, or a score is not finite.
    """
    line_of = {query: line for line, query in enumerate(run.queries)}
    hits, counts = [], run.found
    for query in asked:
        line = line_of.get(query)
        count = 0 if line is None else int(counts[line])
        ids = run.documents.ids(run.rows[line, :count]) if line is not None else []
        rows, scores = corpus.rows(ids), run.scores[line or 0, :count]
        if (rows < 0).any():
            unknown = ids[int((rows < 0).argmax())]
            raise UserError(
                f"{source}: query {query!r} names the document {unknown!r}, which the corpus does not have: "
                "is it a run over this dataset?"
            )
        if not np.isfinite(scores).all():  # a fusion could not weigh it, and a prompt could not show it
            odd = ids[int((~np.isfinite(scores)).argmax())]
            raise UserError(f"{source}: the score of query {query!r} and document {odd!r} is infinite or too large")
        hits.append((rows[:k], scores[:k]))
    return Run.ranked(asked, hits, corpus)
