"""Score a run, and compare systems by their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.foundation.core.flags import OUTPUT, Flag, as_list
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.data.dataset import Aspects, Dataset
    from r2med.data.overlays import Overlay
    from r2med.data.runs.run import Run
    from r2med.evaluation.comparison.comparison import Comparison
    from r2med.evaluation.measure.measures import Measure
    from r2med.evaluation.measure.scores import Scores


def score(
    qrels: Annotated[
        Mapping[str, Mapping[str, int]] | str | Path, Flag("Judgements: TREC, TSV or JSON Lines.", metavar="FILE")
    ],
    run: Annotated[
        Run | Mapping[str, Mapping[str, float]] | str | Path, Flag("A TREC run file, gzipped or not.", metavar="FILE")
    ],
    measures: Annotated[
        Measure | str | Sequence[Measure | str] | None,
        Flag(
            "A measure such as nDCG@5. May be repeated. Default: those of records.",
            names=("--measure",),
            metavar="NAME",
        ),
    ] = None,
    aspects: Annotated[
        Aspects | str | Path | None,
        Flag(
            "Aspects of the answers, a file like aspects.jsonl: also compute alpha-nDCG and A-Recall.", metavar="FILE"
        ),
    ] = None,
) -> Scores:
    """Score a run against judgements. A judged query that the run lacks counts 0.

    `qrels` is query id -> document id -> grade, or a file in TREC, TSV or JSON Lines format. `run` is a `Run`, query
    id -> document id -> score, or a TREC run file, gzipped or not. With `aspects`, those of a dataset or a file like
    `aspects.jsonl`, the measures of aspects are computed too: those of `measures`, or the usual ones.

    Raises UserError if a measure does not exist, if a file has nothing to score, or if an argument is a DataFrame.
    """
    from r2med.evaluation.measure.score_inputs import given_aspects, given_measures, given_qrels, given_run
    from r2med.evaluation.measure.scores import score_run

    judged = given_qrels(qrels)
    ranked = given_run(run, judged)
    of_rankings, of_aspects = given_measures(measures, has_aspects=aspects is not None)
    return score_run(judged, ranked, of_rankings, given_aspects(aspects), of_aspects)


def compare(
    *systems: Annotated[str | Path | Sequence[str | Path], flags.COMPARED_SYSTEMS],
    results: Annotated[str | Path, flags.RESULTS] = "results",
    data: Annotated[str | Path | Dataset | Sequence[str | Path | Dataset] | None, flags.COMPARED_DATA] = None,
    overlays: Annotated[str | Path | Overlay | Sequence[str | Path | Overlay] | None, flags.OVERLAYS] = None,
    measure: Annotated[
        str | None,
        Flag(
            "A measure of the records: nDCG@10, MRR, R@100, …. Default: nDCG@10, that of the lock, or the accuracy of "
            "answers.",
            metavar="NAME",
        ),
    ] = None,
    baseline: Annotated[str | None, flags.BASELINE] = None,
    worse_than: Annotated[
        float | None,
        Flag(
            "With --baseline: end with code 1 if a system is worse by more than this many points, and with 3 if the "
            "queries cannot decide it.",
            metavar="POINTS",
            low=0,
        ),
    ] = None,
    slice_by: Annotated[
        str | Sequence[str] | None,
        Flag(
            "Also compare by task, scenario, body-system, length or positives. May be repeated.",
            names=("--slice",),
            metavar="KIND",
        ),
    ] = None,
    lock: Annotated[str | Path | None, flags.LOCK] = None,
    answers: Annotated[bool, flags.ANSWERS] = False,
    condition: Annotated[str | None, flags.ANSWER_CONDITION] = None,
    max_failures: Annotated[float, flags.MAX_FAILURES] = 0.1,
    resamples: Annotated[int, flags.RESAMPLES] = 10_000,
    seed: Annotated[int, Flag("Seed of the random sign flips.", low=0, is_rare=True)] = 0,
    out: Annotated[
        str | Path | None,
        Flag(
            "Folder for the tables of a paper (Markdown, LaTeX, CSV) and a figure of the scores (SVG).",
            OUTPUT,
            ("--out", "-o"),
            metavar="DIR",
        ),
    ] = None,
) -> Comparison:
    """Compare systems by their records: paired by query, stratified by dataset.

    `systems` are names of systems with records in `results`, record files, or folders of them. With a baseline, every
    other system is compared with it. Without one, every pair is compared. `data` are datasets or groups. By default
    these are datasets of one group, because scores of different groups are never averaged. All systems that are named
    are compared, on the datasets that they share. If none is named, the largest group of systems that were run on the
    same datasets is compared, and notices name the rest. With `overlays`, the rankings are scored with the labels of
    these files too. `lock` is the file of a comparison that was decided beforehand: its systems, datasets, measure and
    baseline are used, and anything else is an error. With `answers`, the records of `r2med answer` are compared: each
    system with each reader, by a measure of answers, in one condition. With `worse_than`, `gate` says of each system if
    it is worse than the baseline by more than these points. With `out`, the tables of a paper and a figure of the
    scores are written.

    Raises UserError if no two systems were run on the same data, or if `data` names datasets of several groups.
    """
    from dataclasses import replace

    from r2med.data.dataset_word import given_data
    from r2med.data.overlays import given_overlays
    from r2med.evaluation.comparison.comparing import ComparedWith, compared_records
    from r2med.evaluation.comparison.report import write_report
    from r2med.evaluation.records.collection import given_records
    from r2med.foundation.store.files import check_writable

    if out is not None:
        check_writable(Path(out), "out (--out)")
    wanted = ComparedWith(measure, baseline or "", as_list(slice_by), resamples, seed, worse_than)
    compared = compared_records(
        given_records(*systems),
        Path(results),
        given_data(data),
        given_overlays(overlays),
        wanted,
        max_failures,
        lock=Path(lock) if lock else None,
        condition=condition,
        answers=answers,
    )
    if out is None:
        return compared.comparison
    return replace(compared.comparison, files=write_report(compared, Path(out)))
