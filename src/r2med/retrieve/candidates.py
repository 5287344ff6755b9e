"""A run file as a retriever: somebody else's first stage, for our rerankers or for fusion."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import Instruction
from r2med.errors import UserError
from r2med.retrieve.contracts import Retriever, SearchQuery
from r2med.retrieve.fusion import Fusion
from r2med.retrieve.run import Run
from r2med.retrieve.trec import read_run
from r2med.store import Store

PREFIX = "run:"
_AWKWARD = re.compile(r"[\s()+,=@%]|→|->")
"""What means something in the grammar of systems, so that a name with it would not parse back."""
ENDINGS = (".trec", ".trec.gz", ".run", ".run.gz", ".txt", ".txt.gz")


@dataclass(frozen=True)
class Candidates:
    """A TREC run, or a folder that has one for each dataset."""

    path: Path

    @property
    def name(self) -> str:
        """What one types to get it; what the grammar of systems would take for its own is percent-encoded."""
        return PREFIX + _AWKWARD.sub(lambda found: quote(found[0], safe=""), str(self.path))

    @classmethod
    def named(cls, typed: str) -> Candidates:
        """Return those of a name; a path that is there as it was typed is meant as it was typed."""
        path = Path(typed.removeprefix(PREFIX))
        return cls(path if path.expanduser().exists() else Path(unquote(str(path))))

    def of(self, dataset: Dataset) -> Candidates:
        """Return the run of one dataset."""
        path = self.path.expanduser()
        if not path.is_dir():
            return self
        place = path.joinpath(*dataset.name.split("/"))
        beside = [place.with_name(place.name + ending) for ending in ENDINGS]
        inside = [file for ending in ENDINGS for file in sorted(place.glob(f"*{ending}"))]
        found = [file for file in (*beside, *inside) if file.is_file()]
        if len(found) != 1:
            what = f"{len(found)} runs" if found else "no run"
            raise UserError(
                f"{self.path} has {what} for {dataset.name}: one is needed, as {dataset.name}.trec, or name a file"
            )
        return Candidates(found[0])

    def describe(self, instruction: Instruction | None = None) -> dict[str, Any]:
        """Return the hash of the file: what it is called has no part in a score."""
        return {"retriever": "candidates", "sha256": hashlib.sha256(self._bytes()).hexdigest()}

    def index(self, corpus: Corpus, store: Store, instruction: Instruction | None = None) -> CandidateSearcher:
        """Return a searcher that looks rankings up."""
        return CandidateSearcher(self.path, corpus)

    def _bytes(self) -> bytes:
        path = self.path.expanduser()
        if path.is_dir():
            raise UserError(f"{path} is a folder: the run of one dataset is asked for, or name a file")
        try:
            return path.read_bytes()
        except FileNotFoundError:
            raise UserError(f"{path}: no such run file") from None


def of_dataset(retriever: Retriever, dataset: Dataset) -> Retriever:
    """Return a retriever in which every folder of runs has become the run of one dataset."""
    if isinstance(retriever, Candidates):
        return retriever.of(dataset)
    if isinstance(retriever, Fusion):
        return replace(retriever, parts=tuple(of_dataset(part, dataset) for part in retriever.parts))
    return retriever


class CandidateSearcher:
    """Looks up what a run found; all that it names has to be there."""

    def __init__(self, path: Path, corpus: Corpus) -> None:
        self.timings: Mapping[str, float] = {}
        self.prepared: Mapping[str, float] = {}
        self._path, self._corpus = path, corpus

    def search(self, queries: Sequence[SearchQuery], k: int) -> Run:
        """Return the k best of each query; one that the run does not have found nothing."""
        asked = [query.query.id for query in queries]
        run = self._read(asked)
        line_of = {query: line for line, query in enumerate(run.queries)}
        found, counts = [], run.found
        for query in asked:
            line = line_of.get(query)
            count = 0 if line is None else int(counts[line])
            ids = run.documents.ids(run.rows[line, :count]) if line is not None else []
            rows, scores = self._corpus.rows(ids), run.scores[line or 0, :count]
            if (rows < 0).any():
                unknown = ids[int((rows < 0).argmax())]
                raise UserError(
                    f"{self._path}: query {query!r} names the document {unknown!r}, which the corpus does not have: "
                    "is it a run over this dataset?"
                )
            if not np.isfinite(scores).all():  # a fusion could not weigh it, and a prompt could not show it
                odd = ids[int((~np.isfinite(scores)).argmax())]
                raise UserError(
                    f"{self._path}: the score of query {query!r} and document {odd!r} is infinite or too large"
                )
            found.append((rows[:k], scores[:k]))
        return Run.ranked(asked, found, self._corpus)

    def usage(self) -> dict[str, float]:
        """Return nothing: no model is asked."""
        return {}

    def _read(self, asked: Sequence[str]) -> Run:
        path = self._path.expanduser()
        run, known = read_run(path), set(asked)
        if known.isdisjoint(run.queries) or not known.issuperset(run.queries):
            run = read_run(path, encoded=True)  # written by us, with ids that hold white space
        if not run.queries:
            raise UserError(f"{self._path} is empty: there is nothing to rerank")
        if unknown := [query for query in run.queries if query not in known]:
            raise UserError(
                f"{self._path} names queries that the dataset does not have "
                f"({len(unknown):,} of {len(run.queries):,}), such as {unknown[0]!r}: is it a run over this dataset?"
            )
        return run
