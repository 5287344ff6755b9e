"""Choose pipelines on other questions than those that they are scored on: the questions are split into folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from r2med.evaluation.measure.scores import Floats
from r2med.systems.system import System

FOLDS = 5


@dataclass(frozen=True)
class Pipeline:
    """A system, for each fold the system that the other folds prefer, and what the questions of each fold get there."""

    system: System
    """The system that all questions together prefer."""
    folds: tuple[System, ...]
    points: Floats
    """The points of each question in the system of its fold; NaN if it was not asked."""

    @property
    def is_whole(self) -> bool:
        """True if all questions were asked."""
        return not np.isnan(self.points).any()


def folds_of(questions: int) -> list[list[int]]:
    """Return the questions of each fold."""
    order = np.random.default_rng(0).permutation(questions)
    return [sorted(order[fold::FOLDS].tolist()) for fold in range(FOLDS)]


def preferred(pipelines: Sequence[Pipeline], folds: Sequence[Sequence[int]], place: int = 0) -> Pipeline:
    """Return one pipeline that is, for each fold, the pipeline that is best on the other folds.

    `place` 1 is the second best, and so on.
    """
    points = np.stack([each.points for each in pipelines])
    rows = chosen_on_others(points, folds, place)
    chosen = np.empty(points.shape[1])
    for fold, row in zip(folds, rows, strict=True):
        chosen[fold] = points[row, fold]
    systems = tuple(pipelines[row].folds[fold] for fold, row in enumerate(rows))
    return Pipeline(pipelines[_in_order(points)[place]].system, systems, chosen)


def chosen_on_others(points: Floats, folds: Sequence[Sequence[int]], place: int = 0) -> list[int]:
    """Return for each fold the row of `points` (rows × questions) that is best on the questions of all other folds.

    `place` 1 is the second best, and so on. Of rows with equal scores, the first comes first.
    """
    return [_in_order(np.delete(points, list(fold), axis=1))[place] for fold in folds]


def _in_order(points: Floats) -> list[int]:
    order: list[int] = np.argsort(-np.round(points.mean(axis=1), 9), kind="stable").tolist()
    return order
