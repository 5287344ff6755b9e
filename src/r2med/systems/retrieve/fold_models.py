"""A folder with one model for each fold of a dataset, and the file that gives the fold of each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from r2med.data.dataset import Dataset
from r2med.data.fold_file import FOLDS_NAME, Folds, fold_folder
from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import decoded, encoded, typed_path
from r2med.foundation.store import digest
from r2med.systems.retrieve.retriever import SearchQuery

FOLDS_PREFIX = "folds:"


@dataclass(frozen=True)
class FoldModels:
    """The models of the folds, and which of them was trained without a query."""

    name: str
    """The stage, as typed: folds:DIR."""

    @cached_property
    def folder(self) -> Path:
        """The folder. Raises UserError if there is none."""
        folder = typed_path(decoded(self.name.removeprefix(FOLDS_PREFIX))).absolute()
        if not folder.is_dir():
            raise UserError(f"{self.name}: there is no such folder")
        return folder

    @cached_property
    def folds(self) -> Folds:
        """The fold of each query. Raises UserError if the file cannot be used, or if the model of a fold is missing."""
        folds = Folds.read(self.folder / FOLDS_NAME)
        for fold in folds.numbers:
            if not (self.folder / fold_folder(fold)).is_dir():
                raise UserError(
                    f"{self.name}: the model of fold {fold} is missing: train it with the rows of {fold_folder(fold)} "
                    f"into {self.folder / fold_folder(fold)}"
                )
        return folds

    @property
    def specs(self) -> dict[int, str]:
        """Fold -> its model, as typed: path:DIR."""
        return {fold: f"path:{encoded(str(self.folder / fold_folder(fold)))}" for fold in self.folds.numbers}

    @cached_property
    def digest(self) -> str:
        """A digest of the fold of each query."""
        return digest(sorted((row.query, row.text, row.fold) for row in self.folds.of_query.values()))

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise UserError if a query of a dataset has no fold, or if the folds are of another dataset."""
        for dataset in datasets:
            for query in dataset.queries:
                self.folds.fold_of(query)

    def lines(self, queries: Sequence[SearchQuery]) -> dict[int, list[int]]:
        """Return fold -> the positions of its queries. Raises UserError if a query has no fold."""
        lines: dict[int, list[int]] = {}
        for line, query in enumerate(queries):
            lines.setdefault(self.folds.fold_of(query.query), []).append(line)
        return dict(sorted(lines.items()))


def joined_runs(queries: Sequence[str], parts: Sequence[tuple[Sequence[int], Run]]) -> Run:
    """Return one run of the runs of parts, each with the positions of its queries."""
    width = max((run.rows.shape[1] for _, run in parts), default=0)
    rows = np.full((len(queries), width), NO_DOCUMENT, dtype=np.int32)
    scores = np.zeros((len(queries), width), dtype=np.float32)
    for lines, run in parts:
        rows[lines, : run.rows.shape[1]] = run.rows
        scores[lines, : run.rows.shape[1]] = run.scores
    return Run(tuple(queries), rows, scores, parts[0][1].documents)
