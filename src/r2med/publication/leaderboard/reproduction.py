"""Run systems with known scores, and compare the new scores with the known ones: `reproduce(names, data)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Literal

from pydantic import BaseModel, ConfigDict

from r2med.data import Dataset
from r2med.data import names as dataset_names
from r2med.data.dataset_cards import OWN_PREFIX
from r2med.data.dataset_word import DatasetWord, GivenData, data_words
from r2med.evaluation.measure.run_variance import FEWEST_RUNS
from r2med.evaluation.measure.significance import ALPHA
from r2med.evaluation.records.collection import honestly_named
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.batch import plan_run
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.spec import parse, parse_stage, printed_system
from r2med.foundation.runtime.runtime import Runtime
from r2med.publication.leaderboard.expectations import MEASURE, Expectation, expectations
from r2med.publication.leaderboard.published import PublishedRow, published
from r2med.systems.rerank.llm_reranker import OWN_PROMPT
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

AVERAGE = "average"

Verdict = Literal["OK", "near", "off", "not comparable", "not run"]

WORST: tuple[Verdict, ...] = ("off", "not comparable", "near", "OK", "not run")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Figure(_Part):
    """One score × 100, expected and observed."""

    dataset: str
    measure: str
    expected: float
    observed: float | None
    """The mean over runs; None if it was not run."""
    verdict: Verdict
    spread: float | None = None
    """Half of the range in which 95 % of single runs lie around `observed`; None for fewer than three runs."""


class Reproduction(_Part):
    """The result of one expectation."""

    expectation: Expectation
    """The expected scores, with their source."""
    command: str
    """The command that makes the scores."""
    figures: tuple[Figure, ...]
    errors: tuple[str, ...] = ()
    """Reasons why datasets have no scores."""
    remarks: tuple[str, ...] = ()
    """Reasons why scores cannot be compared with the expected ones."""
    versions: dict[str, str] = {}
    """Package -> its version."""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of the scores that were computed."""
        return min((figure.verdict for figure in self.figures), key=WORST.index)


Runs = Mapping[str, Sequence[Record]]
"""Dataset -> the records of the repeats of a system."""


def outcome(expectation: Expectation, runs: Runs, datasets: Sequence[str] = ()) -> Reproduction:
    """Compare an expectation with the runs of its system, on all of its datasets or on some.

    A difference that one more run could make is not "off": an expected score is that of one run.
    """
    datasets = datasets or list(expectation.values)
    records = {name: repeats[0] for name, repeats in runs.items()}
    ours = own_prompts(records.values())
    figures = [
        _figure(expectation, name, measure, expected, _scores(runs.get(name, ()), measure))
        for name in datasets
        for measure, expected in expectation.values[name].items()
    ]
    if expectation.average is not None and len(datasets) == len(expectation.values):
        parts = [_scores(runs.get(name, ()), MEASURE) for name in datasets]
        averages = _averages(parts) if all(parts) else []
        figures.append(_figure(expectation, AVERAGE, MEASURE, expectation.average, averages))
    return Reproduction(
        expectation=expectation,
        command=expectation.command(datasets),
        figures=tuple(_not_comparable(figure) if ours else figure for figure in figures),
        remarks=tuple(f"{name}: not comparable (own prompt)" for name in ours),
        versions=next((record.versions for record in records.values()), {}),
    )


def own_prompts(records: Iterable[Record]) -> list[str]:
    """Return the trained LLM rerankers that read our prompt."""
    stages = {stage.name: stage for record in records for stage in record.stages if stage.stage == "rerank"}
    trained = [
        stage
        for name, stage in stages.items()
        if (card := LLM_RERANKERS.get(parse_stage(name)[0].name)) is not None and card.is_trained
    ]
    return [stage.name for stage in trained if stage.prompt == OWN_PROMPT]


def _not_comparable(figure: Figure) -> Figure:
    return figure if figure.observed is None else figure.model_copy(update={"verdict": "not comparable"})


def chosen_scores(
    names: Sequence[str], data: Sequence[GivenData], cpu: bool = False
) -> list[tuple[Expectation, dict[str, str | Dataset]]]:
    """Return the expectations of systems on datasets, each with dataset -> the name or folder that the user typed.

    With `cpu`, only those that need neither a GPU nor a key. Raises UserError if a system has no expectation on these
    datasets.
    """
    words: dict[str, str | Dataset] = {}
    for given in data:
        typed = [given] if isinstance(given, Dataset) else dataset_names(given)
        words |= {_dataset_name(each): each for each in typed}
    selected = []
    for name in names or [""]:
        of_name = _of_name(name, cpu)
        on_data = [(each, _among(each, words)) for each in of_name]
        on_data = [(each, there) for each, there in on_data if there]
        if not on_data:
            known = ", ".join(dict.fromkeys(each.data for each in of_name))
            raise UserError(
                f"no scores are known for {name or 'any system'} on {', '.join(data_words(data))}, only on {known}: "
                "r2med reproduce --plan shows all"
            )
        selected += on_data
    return selected


def known_scores(names: Sequence[str], cpu: bool = False) -> tuple[list[Expectation], list[PublishedRow]]:
    """Return the expectations of systems, and the published rows of these names that r2med cannot run.

    An empty name means all. With `cpu`, only what needs neither a GPU nor a key. Raises UserError if nothing is known
    about a name.
    """
    if cpu:
        return [each for name in names for each in _of_name(name, cpu)], []
    rows = [row for name in names for row in _not_runnable(name)]
    expected = [each for name in names if not (name and _not_runnable(name)) for each in _of_name(name)]
    return expected, rows


def _of_name(name: str, cpu: bool = False) -> list[Expectation]:
    typed = _as_printed(name)
    of_name = [each for each in expectations() if not name or typed in (each.system, each.label)]
    if not of_name and (rows := _not_runnable(name)):
        raise UserError(f"{name} cannot be run. {rows[0].reason}")
    if not of_name:
        raise unknown("expectation", name, [each.system for each in expectations()], "r2med reproduce --plan shows all")
    if cpu and not (of_name := [each for each in of_name if each.needs_no_model]):
        raise UserError(f"{name} needs a GPU or a key: run it without cpu (--cpu)")
    return of_name


def _not_runnable(name: str) -> list[PublishedRow]:
    return [row for row in published() if not row.system and (not name or row.name == _as_printed(name))]


def _as_printed(name: str) -> str:
    return printed_system(parse(name)) if name else ""


def _dataset_name(given: str | Dataset) -> str:
    """Return the name of a dataset in lower case, because folders of benchmarks often have such names."""
    return (given.name if isinstance(given, Dataset) else DatasetWord.parse(given).record_name).lower()


def _among(expectation: Expectation, words: Mapping[str, str | Dataset]) -> dict[str, str | Dataset]:
    """Return the datasets of an expectation that the user typed. An average alone needs all of its datasets."""
    there = {name: words.get(name.lower(), "") for name in expectation.values}
    typed = {name: word for name, word in there.items() if word}
    return typed if len(typed) == len(there) or any(expectation.values[name] for name in typed) else {}


def reproduced(
    expectation: Expectation, words: Mapping[str, str | Dataset], folder: Path, runtime: Runtime, repeats: int = 1
) -> Reproduction:
    """Run the system of an expectation, and compare its scores: the means over its runs, if it varies."""
    runtime = runtime.with_settings(recorded=runtime.setup.recorded or expectation.recorded)
    plan = plan_run([expectation.system], list(words.values()), repeats=repeats, setup=runtime)
    results = plan.evaluate(folder)
    [row] = results.rows
    runs = {
        name: [honestly_named(_of_dataset(stored.record, name), folder) for stored in cell.repeats]
        for name, cell in zip(words, row.cells, strict=True)
        if cell
    }
    errors = [
        error if len(failed) == 1 else f"on {len(failed)} datasets: {error}" for error, failed in results.errors.items()
    ]
    for name in [name for name, repeats in runs.items() if repeats[0].dataset.name.startswith(OWN_PREFIX)]:
        del runs[name]
        errors.append(f"the data are not the dataset {name} of the benchmark")
    made = outcome(expectation, runs, list(words))
    return made.model_copy(update={"errors": tuple(dict.fromkeys(errors))})


def _of_dataset(record: Record, name: str) -> Record:
    """Return a record whose data are named as in an expectation, so that data in `scifact` are checked as SciFact's."""
    facts = record.dataset
    if facts.name.lower() != name.lower():
        return record
    return record.model_copy(update={"dataset": facts.model_copy(update={"name": name})})


def _scores(repeats: Sequence[Record], measure: str) -> list[float]:
    """Return the score × 100 of each run."""
    return [100 * record.mean[measure] for record in repeats]


def _averages(parts: Sequence[Sequence[float]]) -> list[float]:
    """Return the average over datasets of each run.

    Their mean is that of the datasets. If these have different numbers of runs, the spread is not known.
    """
    if len({len(part) for part in parts}) > 1:
        return [fmean(map(fmean, parts))]
    return [sum(run) / len(run) for run in zip(*parts, strict=True)]


def _figure(expectation: Expectation, dataset: str, measure: str, expected: float, scores: Sequence[float]) -> Figure:
    observed = fmean(scores) if len(scores) > 1 else next(iter(scores), None)
    spread = _run_spread(scores)
    off = None if observed is None else abs(observed - expected) - 1e-9  # 0.01 apart is within 0.01
    verdict: Verdict = "not run" if off is None else "OK" if off <= expectation.ok else "near"
    if off is not None and off > max(expectation.near, spread or 0.0):
        verdict = "off"
    return Figure(
        dataset=dataset, measure=measure, expected=expected, observed=observed, verdict=verdict, spread=spread
    )


def _run_spread(scores: Sequence[float]) -> float | None:
    """Return half of the 95 % range of one more run around the mean of these runs, by Student's t."""
    if len(scores) < FEWEST_RUNS:
        return None
    from scipy.stats import t as student

    quantile = float(student.ppf(1 - ALPHA / 2, len(scores) - 1))
    return quantile * stdev(scores) * sqrt(1 + 1 / len(scores))
