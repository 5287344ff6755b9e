"""What an audit looks at: the judgements, and the dataset and the rankings of systems if they are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from r2med.assessment.audit.corpus_scan import CorpusScan, scan_corpus
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.data.problems import Problems
from r2med.data.text_copies import CopyKind, TextCopies, find_copies
from r2med.evaluation.measure.incomplete_labels import Lists
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.rankings import ranked_lists


@dataclass(frozen=True)
class AuditMaterial:
    """The material of one audit. The corpus is read when a check needs it, once for all checks."""

    name: str
    qrels: Qrels
    dataset: Dataset | None = None
    """None if only judgements are at hand."""
    rankings: Mapping[str, Lists] = field(default_factory=dict)
    """System -> the first documents of every judged query."""
    no_rankings: str = ""
    """Why there are no rankings, if reading them failed."""
    problems: Problems | None = None
    """What `r2med data check` says; None for values in memory."""

    @cached_property
    def queries(self) -> Mapping[str, Query]:
        """The queries of the dataset by id."""
        return {query.id: query for query in self.dataset.queries} if self.dataset else {}

    @cached_property
    def relevant(self) -> Mapping[str, Sequence[str]]:
        """Judged query -> its relevant documents."""
        return {
            query: [document for document, grade in grades.items() if grade > 0] for query, grades in self.qrels.items()
        }

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Judged document -> its row in the corpus, for the documents that the corpus has."""
        if self.dataset is None:
            return {}
        judged = sorted({document for grades in self.qrels.values() for document in grades})
        found = self.dataset.corpus.rows(judged).tolist()
        return {document: row for document, row in zip(judged, found, strict=True) if row >= 0}

    @cached_property
    def scan(self) -> CorpusScan:
        """What one pass over the corpus found."""
        assert self.dataset is not None
        return scan_corpus(self.dataset.corpus, set(self.rows.values()))

    @cached_property
    def copies(self) -> TextCopies:
        """The copies of relevant documents."""
        assert self.dataset is not None
        empty = set(self.scan.empty)
        relevant = {self.rows.get(document, -1) for documents in self.relevant.values() for document in documents}
        kinds: tuple[CopyKind, ...] = ("equal", "near", "contained", "half")
        return find_copies(self.dataset.corpus, relevant - empty - {-1}, kinds=kinds)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Return the ids of documents."""
        return self.dataset.corpus.ids(rows) if self.dataset else []


def rankings_at_hand(dataset: Dataset, results: Path) -> dict[str, Lists]:
    """Return the rankings of a dataset's records in a folder: system -> rankings.

    Records of earlier data are left out. Raises UserError if the folder has no records.
    """
    rankings = {}
    for (system, name), kept in collect((), results, max_failures=1.0).cells.items():
        same = name == dataset.name and kept.record.dataset.fingerprint == dataset.fingerprint
        if same and (lists := ranked_lists(kept, dataset)):
            rankings[system] = lists
    return rankings
