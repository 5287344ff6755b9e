"""`r2med.score`: qrels, runs, aspects and measures may be values, files or names. What computes is in scores.py."""

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
    MIMIC_FAMILIES,
    Measure,
)
from r2med.evaluation.measure.scores import Scores, score_run
from r2med.foundation.core.errors import UserError, refuse_table
from r2med.foundation.core.one_or_many import several


def score(
    qrels: Mapping[str, Mapping[str, int]] | str | Path,
    run: Run | Mapping[str, Mapping[str, float]] | str | Path,
    measures: Measure | str | Sequence[Measure | str] = DEFAULT_MEASURES,
    aspects: Aspects | str | Path | None = None,
) -> Scores:
    """Score a run against qrels, like `r2med score`. A judged query that the run lacks counts 0.

    `qrels` is query id -> document id -> grade, or a file in TREC, TSV or JSON Lines format. `run` is a `Run`, query
    id -> document id -> score, or a TREC run file, gzipped or not. With `aspects`, those of a dataset or a file like
    `aspects.jsonl`, the measures of aspects are computed too: those of `measures`, or the usual ones.

    Raises UserError if a measure does not exist, if a file has nothing to score, or if an argument is a DataFrame.
    """
    refuse_table(qrels, "qrels", "query id -> document id -> grade")
    refuse_table(run, "run", "query id -> document id -> score")
    if isinstance(qrels, str | Path):
        qrels = _read_qrels(Path(qrels))
    if isinstance(run, str | Path):
        run = _read_run(Path(run), qrels)
    wanted = [Measure.parse(measure) if isinstance(measure, str) else measure for measure in several(measures)]
    if mimics := [measure for measure in wanted if measure.family in MIMIC_FAMILIES]:
        raise UserError(f"{mimics[0]} needs labels that qrels do not have: r2med compare --overlay FILE shows it")
    if of_answers := [measure for measure in wanted if measure.family in ANSWER_FAMILIES]:
        raise UserError(f"{of_answers[0]} is a measure of answers, not of rankings: r2med compare --answers shows it")
    by_aspects = [measure for measure in wanted if measure.family in ASPECT_FAMILIES]
    if by_aspects and aspects is None:
        raise UserError(f"{by_aspects[0]} needs the aspects of the answers: score(…, aspects=dataset.aspects)")
    wanted = [measure for measure in wanted if measure not in by_aspects]
    given = aspects_of_file(Path(aspects)) if isinstance(aspects, str | Path) else aspects
    return score_run(qrels, run, wanted, given, by_aspects or ASPECT_MEASURES)


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
