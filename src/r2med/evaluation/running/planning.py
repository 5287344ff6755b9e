"""Plan an evaluation from the sizes of its datasets: what each stage would index, encode, download and ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from tempfile import TemporaryDirectory

import numpy as np

from r2med.data import Dataset
from r2med.data.dataset_cards import cards, groups
from r2med.data.dataset_word import DatasetWord
from r2med.data.hub import is_fetched
from r2med.data.loading import load_dataset
from r2med.evaluation.running.batch import RunPlan
from r2med.evaluation.running.plan_page import Plan, PlanRow
from r2med.evaluation.running.results import DETERMINISTIC
from r2med.foundation.core.errors import MissingExtraError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.foundation.store.holdings import holdings
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted
from r2med.models.encoders.devices import devices
from r2med.models.llm.chat import ChatRequest
from r2med.models.llm.costs import approximate_tokens
from r2med.systems.system import System

SAMPLE = 200
"""Number of documents in the sample that the mean length is taken from."""


@dataclass(frozen=True)
class PlannedDataset:
    """A dataset of a plan: its size, and the dataset itself if it was read."""

    size: Size
    dataset: Dataset | None = None


@contextmanager
def planned_data(sources: Sequence[str | Dataset], runtime: Runtime, reads: bool) -> Iterator[list[PlannedDataset]]:
    """Give the datasets of a plan. Those that are here are read if the plan shows prompts, or if no card has sizes.

    Their documents are unpacked into a temporary folder, since a plan writes nothing into the store.
    """
    held = [(holding.kind, name, holding.model) for holding in holdings(runtime.store) for name in holding.datasets]
    absent = absent_data(sources, runtime)
    with TemporaryDirectory() as aside:
        planned = []
        for source in sources:
            word = source if isinstance(source, Dataset) else DatasetWord.parse(source)
            stored = frozenset((kind, model) for kind, name, model in held if name == word.label)
            counts = cards()[source].counts if isinstance(source, str) and source in cards() else None
            if counts and (source in absent or not reads):
                planned.append(PlannedDataset(Size(counts.queries, counts.documents, stored=stored)))
                continue
            is_unpacked = ("corpus", "") in stored or (isinstance(word, DatasetWord) and word.folder is None)
            store = runtime.store if is_unpacked else Store(aside)
            dataset = source if isinstance(source, Dataset) else load_dataset(source, store)
            planned.append(PlannedDataset(size_of(dataset, stored), dataset))
        yield planned


def size_of(dataset: Dataset, stored: frozenset[tuple[str, str]] = frozenset()) -> Size:
    """Return the size of a dataset, with the mean length of its queries and of a sample of its documents."""
    rows = np.linspace(0, len(dataset.corpus) - 1, min(SAMPLE, len(dataset.corpus))).astype(np.int32)
    queries, documents = [query.text for query in dataset.queries], dataset.corpus.texts(rows)
    return Size(len(queries), len(dataset.corpus), _mean_tokens(queries), _mean_tokens(documents), stored)


def _mean_tokens(texts: Sequence[str]) -> int:
    return round(sum(map(approximate_tokens, texts)) / max(len(texts), 1))


def absent_data(sources: Sequence[str | Dataset], runtime: Runtime) -> list[str]:
    """Return the names of the datasets that would have to be fetched from the hub before they can be read."""
    known = [cards()[source] for source in sources if isinstance(source, str) and source in cards()]
    return [card.name for card in known if card.hub and not card.folder and not is_fetched(card.hub, runtime.store)]


def prompt_notes(sources: Sequence[str | Dataset], runtime: Runtime) -> tuple[str, ...]:
    """Return how to see the prompts of a plan whose datasets are not all here."""
    absent = absent_data(sources, runtime)
    group = next((group for group, names in groups().items() if set(names) == set(absent)), "")
    named = group or " ".join(map(quoted, absent))
    shown = f"Prompts are shown when the data are on this machine: r2med data fetch {named}"
    return (shown,) if absent else ()


def planned_run(plan: RunPlan) -> Plan:
    """Return the plan of an evaluation. Raises UserError for a fault that would stop it. Nothing is asked."""
    # A system without an expansion and a reranker asks nothing, so no dataset has to be read.
    asks = not all(system.only_searches for system in plan.systems)
    with planned_data(plan.data, plan.runtime, asks) as data:
        read = [each.dataset for each in data if each.dataset is not None]
        for system in plan.systems if read else ():
            _check(system, read)
        rows = [system_row(plan, system, data) for system in plan.systems]
        prompts = {} if not read else _examples(plan.systems, read[0])
    notes = prompt_notes(plan.data, plan.runtime) if asks else ()
    return Plan(tuple(rows), prompts, notes, devices(plan.runtime.setup.device)[0])


def _check(system: System, datasets: Sequence[Dataset]) -> None:
    """Raise UserError if the system cannot run. What is noted about files on the way is not kept."""
    with TemporaryDirectory() as aside, suppress(MissingExtraError):  # the needs of its stage say what is missing
        replace(system, runtime=system.runtime.with_store(Store(aside))).check(datasets)


def system_row(plan: RunPlan, system: System, data: Sequence[PlannedDataset]) -> PlanRow:
    """Return what a system needs in all its runs, stage by stage."""
    runs = plan.runs(system)
    needs = summed(_all_needs(system, each.size, runs) for each in data)
    if plan.repeats == 1:
        return PlanRow(system.name, needs)
    times = tuple(need.times(runs) if need.most_calls else need for need in needs)
    return PlanRow(system.name, times, counted(runs, "run") if runs > 1 else f"{DETERMINISTIC}: one run")


def summed(data: Iterable[Iterable[Needs]]) -> tuple[Needs, ...]:
    """Return the needs of each stage on all datasets. Equal stages count once for each dataset."""
    stages: dict[tuple[str, str], dict[int, Needs]] = {}
    for number, needs in enumerate(data):
        for need in needs:
            stages.setdefault((need.stage, need.candidates_of), {}).setdefault(number, need)
    return tuple(reduce(add, parts.values()) for parts in stages.values())


def _all_needs(system: System, size: Size, runs: int) -> Iterator[Needs]:
    """Yield the needs of all stages in each repeat: models of another seed are other models."""
    for repeat in range(runs):
        repeated = system.in_repeat(repeat) if runs > 1 else system
        for stage in repeated.main_stages:
            for need in stage.needs(size, repeated.runtime):
                yield replace(need, candidates_of=system.name) if stage.kind == "rerank" else need


def _examples(systems: Sequence[System], dataset: Dataset) -> dict[str, ChatRequest]:
    """Return a request of each stage that asks an LLM."""
    asking: dict[str, tuple[Stage, Runtime]] = {
        name: (stage, system.runtime) for system in systems for name, stage in system.asking.items()
    }
    examples = {name: stage.example(dataset, runtime) for name, (stage, runtime) in asking.items()}
    return {name: request for name, request in examples.items() if request is not None}
