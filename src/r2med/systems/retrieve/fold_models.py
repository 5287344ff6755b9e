"""Models of folds: a folder with one model for each fold of a dataset, and the stages that ask them query by query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from r2med.data.dataset import Dataset
from r2med.data.fold_file import FOLDS_NAME, Folds, fold_folder
from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.data.training_sheet import SHEET_NAME, TrainingSheet
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import decoded, encoded, typed_path
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, key_of
from r2med.foundation.store import digest
from r2med.foundation.text.plurals import counted
from r2med.systems.retrieve.retriever import SearchQuery

FOLDS_PREFIX = "folds:"
SEED = "seed-"
"""How the names of folders begin that have the models of one seed: seed-0, seed-1 and so on."""


@dataclass(frozen=True)
class FoldModels:
    """The models of the folds, and which of them was trained without a query."""

    name: str
    """The stage, as typed: folds:DIR."""
    repeat: int = 0
    """Number of the repeat, from 0. If there are models of several seeds, each repeat asks those of another seed."""

    @cached_property
    def folder(self) -> Path:
        """The folder. Raises UserError if there is none."""
        folder = typed_path(decoded(self.name.removeprefix(FOLDS_PREFIX))).absolute()
        if not folder.is_dir():
            raise UserError(f"{self.name}: there is no such folder")
        return folder

    @cached_property
    def seeds(self) -> tuple[Path, ...]:
        """The folders of the seeds, in order; the folder itself if it has no folders of seeds.

        Raises UserError if a seed is missing, or if there are models beside those of seeds.
        """
        named = [path.name.removeprefix(SEED) for path in self.folder.glob(f"{SEED}*") if path.is_dir()]
        numbers = {int(name) for name in named if name.isascii() and name.isdecimal()}
        if not numbers:
            return (self.folder,)
        if missing := sorted(set(range(len(numbers))) - numbers):
            raise UserError(f"{self.name}: {SEED}{missing[0]} is missing: seeds are numbered from 0 without gaps")
        if (self.folder / fold_folder(1)).is_dir():
            raise UserError(
                f"{self.name} has models in {fold_folder(1)} and in {SEED}0, so it is not clear which are meant: "
                f"move those of its folds into a folder {SEED}{len(numbers)}, or remove them"
            )
        return tuple(self.folder / f"{SEED}{number}" for number in range(len(numbers)))

    @property
    def seed(self) -> int:
        """The position of the repeat's seed. Raises UserError if there are fewer seeds than repeats."""
        count = len(self.seeds)
        if self.repeat >= count > 1:
            raise UserError(
                f"{self.name} has models of {counted(count, 'seed')}, so it has no repeat {self.repeat}: ask for "
                f"repeats (--repeats {count}), or train models into {self.folder / f'{SEED}{count}'}",
            )
        return self.repeat if count > 1 else 0

    @cached_property
    def folds(self) -> Folds:
        """The fold of each query. Raises UserError if the file cannot be used, or if the model of a fold is missing."""
        folds = Folds.read(self.folder / FOLDS_NAME)
        for seed in self.seeds:
            for fold in folds.numbers:
                if not (place := seed / fold_folder(fold)).is_dir():
                    raise UserError(
                        f"{self.name}: the model of fold {fold} is missing: train it with the rows of "
                        f"{fold_folder(fold)} into {place}"
                    )
                _check_sheet(place, fold, folds)
        return folds

    @property
    def specs(self) -> tuple[dict[int, str], ...]:
        """For each seed: fold -> its model, as typed: path:DIR."""
        return tuple(
            {fold: f"path:{encoded(str(seed / fold_folder(fold)))}" for fold in self.folds.numbers}
            for seed in self.seeds
        )

    @cached_property
    def digest(self) -> str:
        """A digest of the fold of each query."""
        return digest(sorted((row.query, row.text, row.fold) for row in self.folds.of_query.values()))

    def key(self, seeds: Sequence[Mapping[int, Stage]], dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return what a ranking depends on: the fold of each query, and the models of all seeds.

        The models of all seeds are part of it, so that a lock states them all. The repeat says which were asked.
        """
        models = [
            # The digests of the weights say which models they are, wherever the folder is.
            [{**key_of(part, dataset, runtime), "stage": f"path:{fold_folder(fold)}"} for fold, part in parts.items()]
            for parts in seeds
        ]
        if len(models) == 1:
            return {"folds": self.digest, "models": models[0]}
        return {"folds": self.digest, "models": models, **({"repeat": self.repeat} if self.repeat else {})}

    def lines(self, queries: Sequence[SearchQuery]) -> dict[int, list[int]]:
        """Return fold -> the positions of its queries. Raises UserError if a query has no fold."""
        lines: dict[int, list[int]] = {}
        for line, query in enumerate(queries):
            lines.setdefault(self.folds.fold_of(query.replaces or query.query), []).append(line)
        return dict(sorted(lines.items()))


class FoldStage(Stage):
    """A stage whose work is done by several models: for each query by the one that was trained without it."""

    part: ClassVar[type[Stage]]
    """The stage of a single model, with the same settings."""

    def models(self, runtime: Runtime) -> FoldModels:
        """Return the models in the folder, with those of a repeat."""
        repeat = runtime.setup.repeat
        return runtime.part((self, "folds", repeat), lambda: FoldModels(self.name, repeat))

    def seeds(self, runtime: Runtime) -> list[dict[int, Stage]]:
        """Return for each seed: fold -> the stage of its model. Raises UserError if a model is missing."""
        settings = self.model_dump(exclude={"name"})
        return [
            {fold: self.part(name=spec, **settings) for fold, spec in specs.items()}
            for specs in self.models(runtime).specs
        ]

    def stages(self, runtime: Runtime) -> dict[int, Stage]:
        """Return fold -> the stage of its model, of the seed of this repeat."""
        return self.seeds(runtime)[self.models(runtime).seed]

    def inside(self, runtime: Runtime) -> tuple[Stage, ...]:
        """Return the stages of the models."""
        return tuple(self.stages(runtime).values())

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return no modules: those of the models are theirs."""
        return ()

    def varies(self, runtime: Runtime) -> bool:
        """Return True if there are models of several seeds: each repeat asks those of another seed."""
        return len(self.models(runtime).seeds) > 1

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on: the models, and the fold of each query."""
        return {**self.settings(), **self.models(runtime).key(self.seeds(runtime), dataset, runtime)}

    def check(self, datasets: Sequence[Dataset], runtime: Runtime) -> None:
        """Raise UserError if a query has no fold, or if the folds are of another dataset."""
        folds = self.models(runtime).folds
        for dataset in datasets:
            for query in dataset.queries:
                folds.fold_of(query)


def _check_sheet(place: Path, fold: int, folds: Folds) -> None:
    """Raise UserError if the datasheet beside a model says that it was trained with queries of its fold."""
    if not (file := place / SHEET_NAME).is_file():
        return
    sheet = TrainingSheet.read(file)
    if sheet.fold != fold:
        left_out = f"fold {sheet.fold} was" if sheet.fold else "no fold was"
        raise UserError(
            f"{file} says that {left_out} left out of its training data, but this is the model of fold {fold}: it has "
            f"seen the queries that it would be asked; train it with the rows of {place.name}"
        )
    if sheet.held_out != folds.digest_of(fold):
        raise UserError(
            f"{folds.path} has other queries in fold {fold} than those that were left out of the training data of "
            f"{place}: take the {FOLDS_NAME} of the training set, or train the model again"
        )


def joined_runs(queries: Sequence[str], parts: Sequence[tuple[Sequence[int], Run]]) -> Run:
    """Return one run of the runs of parts, each with the positions of its queries."""
    width = max((run.rows.shape[1] for _, run in parts), default=0)
    rows = np.full((len(queries), width), NO_DOCUMENT, dtype=np.int32)
    scores = np.zeros((len(queries), width), dtype=np.float32)
    for lines, run in parts:
        rows[lines, : run.rows.shape[1]] = run.rows
        scores[lines, : run.rows.shape[1]] = run.scores
    return Run(tuple(queries), rows, scores, parts[0][1].documents)
