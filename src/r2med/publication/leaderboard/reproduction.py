"""Run systems with known scores, and compare the new scores with the known ones: `reproduce(names, data)`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from r2med.data import Dataset
from r2med.data import names as dataset_names
from r2med.data.dataset_cards import OWN_PREFIX
from r2med.data.given_data import GivenData, data_words
from r2med.data.loading import name_of
from r2med.evaluation.records.collection import honestly_named
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.batch import plan_run
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.notices import Setting
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
    verdict: Verdict


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


def outcome(expectation: Expectation, records: Mapping[str, Record], datasets: Sequence[str] = ()) -> Reproduction:
    """Compare an expectation with records (dataset -> record) of its system, on all of its datasets or on some."""
    datasets = datasets or list(expectation.values)
    ours = own_prompts(records.values())
    figures = [figure for name in datasets for figure in _figures(expectation, name, records.get(name))]
    if expectation.average is not None and len(datasets) == len(expectation.values):
        parts = [100 * records[name].mean[MEASURE] for name in datasets if name in records]
        mean = sum(parts) / len(parts) if len(parts) == len(datasets) else None
        figures.append(_figure(expectation, AVERAGE, MEASURE, expectation.average, mean))
    return Reproduction(
        expectation=expectation,
        command=expectation.command(datasets),
        figures=tuple(_not_comparable(figure) if ours else figure for figure in figures),
        remarks=tuple(f"{name}: not comparable (own prompt)" for name in ours),
        versions=next((record.versions for record in records.values()), {}),
    )


def own_prompts(records: Iterable[Record]) -> list[str]:
    """Return the trained LLM rerankers that did not read the prompt of their authors. Older records do not say it."""
    stages = {stage.name: stage for record in records for stage in record.stages if stage.stage == "rerank"}
    trained = [
        stage
        for name, stage in stages.items()
        if (card := LLM_RERANKERS.get(parse_stage(name)[0].name)) is not None and card.is_trained
    ]
    return [stage.name for stage in trained if stage.prompt in ("", OWN_PROMPT)]


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
        raise UserError(f"{name} needs a GPU or a key: run it without ", Setting("reproduce", cpu=True))
    return of_name


def _not_runnable(name: str) -> list[PublishedRow]:
    return [row for row in published() if not row.system and (not name or row.name == _as_printed(name))]


def _as_printed(name: str) -> str:
    return printed_system(parse(name)) if name else ""


def _dataset_name(given: str | Dataset) -> str:
    """Return the name of a dataset in lower case, because folders of benchmarks often have such names."""
    return (given.name if isinstance(given, Dataset) else name_of(given)).lower()


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
    cells = dict(zip(words, plan.evaluate(folder), strict=True))
    records = {
        name: honestly_named(_of_dataset(cell.record.model_copy(update={"mean": cell.means}), name), folder)
        for name, cell in cells.items()
        if cell.record
    }
    errors = [cell.error for cell in cells.values() if cell.error]
    for name in [name for name, record in records.items() if record.dataset.name.startswith(OWN_PREFIX)]:
        del records[name]
        errors.append(f"the data are not the dataset {name} of the benchmark")
    made = outcome(expectation, records, list(words))
    return made.model_copy(update={"errors": tuple(dict.fromkeys(errors))})


def _of_dataset(record: Record, name: str) -> Record:
    """Return a record whose data are named as in an expectation, so that data in `scifact` are checked as SciFact's."""
    facts = record.dataset
    if facts.name.lower() != name.lower():
        return record
    return record.model_copy(update={"dataset": facts.model_copy(update={"name": name})})


def _figures(expectation: Expectation, dataset: str, record: Record | None) -> Iterator[Figure]:
    for measure, expected in expectation.values[dataset].items():
        observed = 100 * record.mean[measure] if record else None
        yield _figure(expectation, dataset, measure, expected, observed)


def _figure(expectation: Expectation, dataset: str, measure: str, expected: float, observed: float | None) -> Figure:
    off = None if observed is None else abs(observed - expected) - 1e-9  # 0.01 apart is within 0.01
    verdict: Verdict = "not run" if off is None else "OK" if off <= expectation.ok else "near"
    if off is not None and off > expectation.near:
        verdict = "off"
    return Figure(dataset=dataset, measure=measure, expected=expected, observed=observed, verdict=verdict)
