"""Figures as BrowseComp-Plus computes them, with its faults, so that they can be compared with published ones.

They differ from ours: accuracy is over the files that exist, citations are runs of digits in brackets, and the loop
over the bins of the calibration error skips the last one. Shares are in percent, rounded to two digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.foundation.core.errors import UserError

BIN_SIZE = 100
"""Number of answers of a bin of the calibration error."""
NO_CONFIDENCE = 100.0
"""The prompt asks the grader to write this number if an answer states no confidence."""

_BRACKETS = (re.compile(r"\[([^\[\]]*?)\]"), re.compile(r"【([^【】]*?)】"))


@dataclass(frozen=True)
class GradedFile:
    """A run file whose question is known, with the verdict of a grader."""

    query: str
    completed: bool
    answer: str
    retrieved: Sequence[str]
    correct: bool | None
    """The verdict of the grader; None if it cannot be read."""
    confidence: float | None
    """In percent; None if the grader wrote none."""
    tool_calls: Mapping[str, int]

    @property
    def is_graded(self) -> bool:
        """True if the grader was asked: the run is complete, and its answer is not empty."""
        return self.completed and bool(self.answer)


def digit_citations(text: str) -> set[str]:
    """Return the runs of digits inside [...] or 【...】: [3, 17] has two, and [Text-106] is 106."""
    inside = (found for pattern in _BRACKETS for found in pattern.findall(text))
    return {digits for part in inside for digits in re.findall(r"\d+", part)}


def browsecomp_figures(files: Sequence[GradedFile], evidence: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Return the figures of the files that exist. `evidence` is query -> the document of each line of its qrels.

    Raises UserError for a question without evidence, which ends the original with a division by zero.
    """
    if not files:
        return {}
    for file in files:
        if not evidence.get(file.query):
            raise UserError(f"{file.query}: a question without relevant documents has no recall as BrowseComp-Plus")
    recalls = [len({*file.retrieved} & {*evidence[file.query]}) / len(evidence[file.query]) for file in files]
    right = sum(bool(file.correct) for file in files if file.is_graded)
    calls = dict.fromkeys(name for file in files for name in file.tool_calls)
    return {
        "files": len(files),
        "accuracy": _percent(right / len(files)),
        "recall": _percent(_mean(recalls)),
        "calibration_error": calibration_error([file for file in files if file.is_graded]),
        **_citation_figures(files, evidence),
        **{f"calls {name}": _mean([file.tool_calls.get(name, 0) for file in files]) for name in calls},
    }


def _citation_figures(files: Sequence[GradedFile], evidence: Mapping[str, Sequence[str]]) -> dict[str, float]:
    cited = [(digit_citations(file.answer), evidence[file.query]) for file in files if file.is_graded]
    citing = [(marks, known) for marks, known in cited if marks]
    shared = [len(marks & {*known}) for marks, known in citing]
    return {
        "citation_precision": _percent(_mean([n / len(marks) for n, (marks, _) in zip(shared, citing, strict=True)])),
        "citation_recall": _percent(_mean([n / len(known) for n, (_, known) in zip(shared, citing, strict=True)])),
        "citation_coverage": _percent(len(citing) / len(files)),
        "citations": _mean([len(marks) for marks, _ in citing]),
    }


def calibration_error(files: Sequence[GradedFile]) -> float:
    """Return the calibration error of the answers with a verdict and a confidence; 0 for fewer than two bins.

    The answers are sorted by confidence and cut into bins of 100. The last bin takes the rest, and is skipped.
    """
    known = [file for file in files if file.correct is not None and file.confidence is not None]
    stated = np.array([file.confidence or 0.0 for file in known]) / 100
    correct = np.array([bool(file.correct) for file in known], float)
    order = np.argsort(stated)  # as the original orders equal values
    bins = [order[start : start + BIN_SIZE] for start in range(0, len(known) // BIN_SIZE * BIN_SIZE, BIN_SIZE)]
    squares = 0.0
    for part in bins[:-1]:
        apart = abs(stated[part].mean() - correct[part].mean())
        squares += len(part) / len(known) * apart**2
    return _percent(math.sqrt(squares))


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _percent(share: float) -> float:
    return round(100 * share, 2)
