"""Evaluate many systems on many datasets. Shared work is done once, and a system that fails does not stop others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from r2med.data import Dataset
from r2med.data.dataset_word import DatasetWord, each_dataset
from r2med.data.loading import announce_fetching, load_dataset
from r2med.evaluation.measure.measures import recorded_measure
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.records.system_names import name_fault
from r2med.evaluation.running.evaluation import DEPTH, evaluated
from r2med.evaluation.running.lock_check import check_lock
from r2med.evaluation.running.results import MEASURE, Results, SystemResults
from r2med.foundation.core.errors import MissingExtraError, UserError
from r2med.foundation.core.spec import Calls
from r2med.foundation.runtime.runtime import Runtime, check_repeats
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders.user_objects import UserObjects
from r2med.systems.expand.expansion import Expansion
from r2med.systems.system import System
from r2med.systems.system.suites import suite as read_suite
from r2med.systems.system.system_specs import cross_product

Expansions = dict[tuple[str, Setup], Expansion]
"""Name of an expansion and settings -> its texts for a dataset. Systems share them, so the LLM is asked only once."""


@dataclass(frozen=True)
class RunPlan:
    """The systems and the datasets of an evaluation, before anything is loaded or searched."""

    systems: tuple[System, ...]
    data: tuple[str | Dataset, ...]
    runtime: Runtime
    k: int = DEPTH
    """Number of documents that are asked for, for each query."""
    measure: str = MEASURE
    """The measure of tables."""
    repeats: int = 1
    """Number of runs of a system that varies."""
    name: str = ""
    """What tables call the only system; empty if each is shown as typed."""
    lock: Lock | None = None
    """The lock that the evaluation must keep to."""
    lock_file: Path | str = ""

    def evaluate(
        self, out: Path | None, fresh: bool = False, announce: Callable[[str], None] = lambda step: None
    ) -> Results:
        """Evaluate every system on every dataset. One that fails is an error in the results, and the others go on.

        Raises UserError if a system, a setting or a dataset is not part of the lock.
        """
        self.check_installed()
        # One view of the store for everything, so that what one system made is used by the next one.
        store = self.runtime.store.with_policy("fresh") if fresh else self.runtime.store
        announce_fetching([source for source in self.data if isinstance(source, str)], store)
        datasets = [
            _attempt(load_dataset, source, store) if isinstance(source, str) else source for source in self.data
        ]
        loaded = [dataset for dataset in datasets if isinstance(dataset, Dataset)]
        # Find errors now. Later they would stop a system after many calls were paid for.
        systems = [system.with_store(store) for system in self.systems]
        faults = [_attempt(system.check, loaded, self.repeats) for system in systems]
        if self.lock is not None:
            for system, fault in zip(systems, faults, strict=True):
                for dataset in loaded if fault is None else ():
                    check_lock(self.lock, self.lock_file, system, dataset, self.k)
        expansions: list[Expansions] = [{} for _ in datasets]
        rows = []
        for system, fault in zip(systems, faults, strict=True):  # systems first, so that each model is loaded once
            cells: list[StoredRecord | None] = []
            errors: list[str] = []
            for dataset, shared in zip(datasets, expansions, strict=True):
                if isinstance(reason := fault or dataset, UserError):
                    cell, error = None, str(reason)
                else:
                    cell, error = self._repeats_of(system, dataset, shared, out, announce)
                cells.append(cell)
                errors.append(error)
            rows.append(SystemResults(self.name or system.name, tuple(cells), tuple(errors)))
        return Results(tuple(self.dataset_names), tuple(rows), self.measure, self.repeats)

    def check_installed(self) -> None:
        """Raise MissingExtraError if a system needs an optional part that is not installed. No data are loaded."""
        self.runtime.engine  # noqa: B018  # a cluster is an optional part, too
        for system in self.systems:
            if isinstance(fault := _attempt(system.check_installed), MissingExtraError):
                raise fault  # any other fault is that of one system, and the others run

    @property
    def steps(self) -> int:
        """Number of steps that `evaluate` announces."""
        return len(self.data) * sum(map(self.runs, self.systems))

    def runs(self, system: System) -> int:
        """Return how often a system is run: once, if each run would give the same."""
        if self.repeats == 1:
            return 1
        varies = _attempt(lambda: system.varies)
        return self.repeats if varies is True else 1  # one that cannot run says so later

    @property
    def dataset_names(self) -> list[str]:
        """The name of each dataset in records and tables."""
        return [source.name if isinstance(source, Dataset) else _name_of(source) for source in self.data]

    def datasets(self) -> list[Dataset]:
        """Load the datasets and return them."""
        return [load_dataset(source, self.runtime.store) if isinstance(source, str) else source for source in self.data]

    def _repeats_of(
        self,
        system: System,
        dataset: Dataset,
        expansions: Expansions,
        out: Path | None,
        announce: Callable[[str], None],
    ) -> tuple[StoredRecord | None, str]:
        """Return the record of a system on a dataset with those of later repeats, and the error that ended them."""
        runs, error = self.runs(system), ""
        records: list[StoredRecord] = []
        for repeat in range(runs):
            announce(f"{dataset.name} · {system.name}" + (f" · repeat {repeat} of 0 to {runs - 1}" if runs > 1 else ""))
            repeated = system.in_repeat(repeat if runs > 1 else system.repeat)
            shared = repeated.expansion_name, repeated.runtime.setup
            try:
                if shared not in expansions:
                    expansions[shared] = repeated.expand(dataset)
                texts = expansions[shared]
                records.append(evaluated(repeated, dataset, out, self.k, texts, self.lock, self.name))
            except UserError as fault:
                error = f"repeat {repeat}: {fault}" if repeat else str(fault)
                break
        return replace(records[0], later=tuple(records[1:])) if records else None, error


def plan_run(
    systems: Sequence[object],
    data: Sequence[str | Path | Dataset],
    *,
    expand: Sequence[str] = (),
    rerank: Sequence[object] = (),
    llms: Sequence[str] = (),
    suite: str = "",
    lock: Path | str = "",
    repeats: int | None = None,
    k: int | None = None,
    measure: str | None = None,
    name: str = "",
    setup: Setup | Runtime,
) -> RunPlan:
    """Return the systems and datasets to evaluate. `name` is what tables call the only system.

    Raises UserError if a name is unknown or a setting has no effect.
    """
    if k is not None and k < 1:
        raise UserError(f"k must be at least 1, not {k}")
    if repeats is not None:
        check_repeats(repeats)
    runtime = setup if isinstance(setup, Runtime) else Runtime(setup)
    specs: list[str | Calls] = [_spec(system, runtime) for system in systems if not isinstance(system, System)]
    rerankers = [_spec(reranker, runtime) for reranker in rerank]
    made = [system for system in systems if isinstance(system, System)]
    shown = recorded_measure(measure) if measure else MEASURE
    if decided := Lock.read(lock) if lock else None:
        _check_is_locked(lock, decided, repeats, measure and shown)
        repeats, k, shown = decided.repeats, k or decided.k, decided.measure
        if runtime.setup.dtype == "auto":  # which would be another precision on another device
            runtime = runtime.with_settings(**decided.model_settings())
        specs = specs or (list(decided.systems) if not (made or suite) else specs)
        data = data or list(decided.datasets)
    if suite:
        chosen = read_suite(suite)
        specs += chosen.calls
        data = data or chosen.data
        llms = llms or ([chosen.llm] if chosen.llm else [])
        runtime = runtime.with_settings(recorded=runtime.setup.recorded or chosen.recorded)
    if runtime.setup.candidates is not None:
        specs, rerankers = [*specs, *rerankers], []
    calls = cross_product(specs, runtime.setup, expand=expand, rerank=rerankers, llms=llms)
    parsed = {system.name: system for system in [*made, *(System.parse(each, runtime) for each in calls)]}
    _check_systems(tuple(parsed), name, lock, runtime)
    sources = tuple(each_dataset(data or ["demo"]))
    return RunPlan(
        tuple(parsed.values()),
        sources,
        runtime,
        k=k or DEPTH,
        measure=shown,
        repeats=repeats or 1,
        name="" if name in parsed else name,
        lock=decided,
        lock_file=lock,
    )


def _check_is_locked(file: Path | str, lock: Lock, repeats: int | None, measure: str | None) -> None:
    """Raise UserError if what was typed differs from what a lock decided. Its settings are compared with the data."""
    if repeats is not None and repeats != lock.repeats:
        raise UserError(f"{file}: its number of runs is {lock.repeats}, not {repeats}; a lock allows nothing else")
    if measure is not None and measure != lock.measure:
        raise UserError(f"{file}: its measure is {lock.measure}, not {measure}; a lock allows nothing else")


def _check_systems(systems: Sequence[str], name: str, lock: Path | str, runtime: Runtime) -> None:
    """Raise UserError if there is no system, or if a name cannot be that of the only one."""
    if not systems and runtime.setup.candidates is not None:
        raise UserError("candidates (--candidates) needs a reranker: r2med run bge-reranker --candidates FILE")
    if not systems:
        raise UserError("no system to run: name one, such as bm25, or a suite")
    if not name:
        return
    if lock:
        raise UserError(f"{lock} says what its systems are called: leave out name (--name {quote(name)})")
    if len(systems) > 1:
        shown = ", ".join(systems[:3]) + (", …" if len(systems) > 3 else "")
        raise UserError(f"name (--name {quote(name)}) names one system, not {len(systems)} ({shown}): run each alone")
    if fault := name_fault(name):
        raise UserError(f"name (--name {quote(name)}): {fault}")
    meant = _attempt(System.parse, name, runtime)
    if isinstance(meant, System) and meant.name not in systems:
        raise UserError(f"name (--name {quote(name)}): {meant.name} is another system: choose another name")


ABOUT_TEXTS = ("generations", "recorded", "prompts", "base_url", "llm_backend")
"""Fields of Setup that only systems with texts of an LLM use."""


def check_texts_are_used(plan: RunPlan) -> None:
    """Raise UserError for a setting about texts or LLMs if no system has a stage that uses it."""
    given = [name for name in ABOUT_TEXTS if getattr(plan.runtime.setup, name)]
    if given and all(system.only_searches for system in plan.systems):
        raise UserError(
            f"{given[0]} (--{given[0].replace('_', '-')}) is about texts of an LLM, and no system uses any: add "
            "expand (--expand hyde) and llms (--llm NAME)"
        )


def _name_of(word: str) -> str:
    """Return the name of a dataset in records. A word that cannot be read is its own name: loading says why."""
    name = _attempt(lambda: DatasetWord.parse(word).record_name)
    return word if isinstance(name, UserError) else str(name)


def _spec(stage: object, runtime: Runtime) -> str:
    return stage if isinstance(stage, str) else UserObjects.of(runtime).name(stage)


def _attempt(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of the work, or the UserError that stopped it."""
    try:
        return work(*arguments)
    except UserError as error:
        return error
