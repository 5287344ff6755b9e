"""What `r2med.score` takes: qrels, runs, aspects and measures are values, files or names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from r2med.data.aspects_file import aspects_of_file
from r2med.data.dataset import Aspects, Qrels
from r2med.data.qrels_file import read_qrels
from r2med.data.runs.run import Run
from r2med.data.runs.trec import read_judged_run
from r2med.evaluation.measure.measures import (
    ANSWER_FAMILIES,
    ASPECT_FAMILIES,
    ASPECT_MEASURES,
    DEFAULT_MEASURES,
    Measure,
)
from r2med.foundation.core.errors import UserError, refuse_table
from r2med.foundation.core.flags import as_list


def given_qrels(qrels: Mapping[str, Mapping[str, int]] | str | Path) -> Qrels:
    """Return judgements. Those of a file are read. Raises UserError if a grade is not a whole number."""
    refuse_table(qrels, "qrels", "query id -> document id -> grade")
    if isinstance(qrels, str | Path):
        return _read_qrels(Path(qrels))
    return qrels if isinstance(qrels, Qrels) else Qrels(qrels)


def given_run(
    run: Run | Mapping[str, Mapping[str, float]] | str | Path, qrels: Mapping[str, Mapping[str, int]]
) -> Run | Mapping[str, Mapping[str, float]]:
    """Return a run. One that is given as a file is read, for the queries of the judgements."""
    refuse_table(run, "run", "query id -> document id -> score")
    return _read_run(Path(run), qrels) if isinstance(run, str | Path) else run


def given_aspects(aspects: Aspects | str | Path | None) -> Aspects | None:
    """Return the aspects of answers. Those of a file are read."""
    return aspects_of_file(Path(aspects)) if isinstance(aspects, str | Path) else aspects


def given_measures(
    measures: Measure | str | Sequence[Measure | str] | None, has_aspects: bool
) -> tuple[list[Measure], Sequence[Measure]]:
    """Return the measures of rankings and those of aspects. Raises UserError for one that qrels cannot give."""
    given = DEFAULT_MEASURES if measures is None else as_list(measures)
    wanted = [Measure.parse(measure) if isinstance(measure, str) else measure for measure in given]
    if of_answers := [measure for measure in wanted if measure.family in ANSWER_FAMILIES]:
        raise UserError(f"{of_answers[0]} is a measure of answers, not of rankings: r2med compare --answers shows it")
    by_aspects = [measure for measure in wanted if measure.family in ASPECT_FAMILIES]
    if by_aspects and not has_aspects:
        raise UserError(f"{by_aspects[0]} needs the aspects of the answers: aspects (--aspects FILE)")
    return [measure for measure in wanted if measure not in by_aspects], by_aspects or ASPECT_MEASURES


def _read_qrels(path: Path) -> Qrels:
    if not path.is_file():
        raise UserError(f"{path}: there is no such qrels file")
    if not (qrels := read_qrels(path)):
        raise UserError(f"{path} has no judgements, so nothing can be scored")
    return qrels


def _read_run(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> Run:
    run = read_judged_run(path, qrels)
    if not set(run.queries) & set(qrels):
        raise UserError(f"{path} has no query of the qrels: are they of the same dataset?")
    return run
