"""Plan an evaluation stage by stage: what the store has, what must be fetched, how long it takes, what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from r2med.data import Dataset
from r2med.data.dataset_cards import cards, groups
from r2med.data.dataset_word import DatasetWord
from r2med.data.hub import is_fetched
from r2med.data.loading import load_dataset
from r2med.evaluation.running.batch import RunPlan
from r2med.evaluation.running.results import DETERMINISTIC
from r2med.foundation.core.plan import Plan
from r2med.foundation.runtime.runtime import Runtime, repeated
from r2med.foundation.store.holdings import holdings
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted
from r2med.systems.system import System


def absent_data(sources: Sequence[str | Dataset], runtime: Runtime) -> list[str]:
    """Return the names of the datasets that would have to be fetched from the hub before they can be read."""
    known = [cards()[source] for source in sources if isinstance(source, str) and source in cards()]
    return [card.name for card in known if card.hub and not card.folder and not is_fetched(card.hub, runtime.store)]


def when_prompts_are_shown(absent: Sequence[str]) -> str:
    """Return how to see the prompts of a plan whose datasets are not here."""
    group = next((group for group, names in groups().items() if set(names) == set(absent)), "")
    named = group or " ".join(map(quoted, absent))
    return f"prompts are shown when the data are on this machine: r2med data fetch {named}"


def planned_data(sources: Sequence[str | Dataset], runtime: Runtime) -> list[DatasetOfPlan]:
    """Return the datasets as a plan sees them: by their cards, and by what the store has of them."""
    held = frozenset((h.kind, name, h.model) for h in holdings(runtime.store) for name in h.datasets)
    return [DatasetOfPlan(source, held, runtime) for source in sources]


def runs_planned(plan: RunPlan, system: System) -> str:
    """Return how often a system would be run, in words."""
    runs = plan.runs(system)
    return counted(runs, "run") if runs > 1 else f"{DETERMINISTIC}: one run"


def stage_plans(plan: RunPlan) -> Iterator[tuple[System, list[Plan]]]:
    """Yield every system with the plans of its stages, each stage once. Nothing is loaded or asked."""
    runtime = plan.runtime
    data = planned_data(plan.data, runtime)
    for system in plan.systems:
        stages = [*([system.expander] if system.expander else []), system.retriever, *system.rerankers]
        plans: dict[str, Plan] = {}
        for each in repeated(runtime, plan.runs(system)):  # models of another seed are other models
            for planned in (planned for stage in stages for planned in stage.plan(data, each)):
                plans.setdefault(planned.name, planned)
        yield system, list(plans.values())


@dataclass(frozen=True)
class DatasetOfPlan:
    """A dataset of a plan. It is loaded only if its card does not state its size."""

    source: str | Dataset
    held: frozenset[tuple[str, str, str]]
    """The contents of the store: (kind of artefact, dataset, model)."""
    runtime: Runtime

    def keeps(self, kind: str, model: str = "") -> bool:
        """Return True if the store has artefacts of this kind, and of this model, for the dataset."""
        return (kind, self._label, model) in self.held

    @cached_property
    def _label(self) -> str:
        return (self.source if isinstance(self.source, Dataset) else DatasetWord.parse(self.source)).label

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self._sizes[0]

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self._sizes[1]

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        source = self.source
        if isinstance(source, str) and source in cards() and (counts := cards()[source].counts):
            return counts.queries, counts.documents
        dataset = source if isinstance(source, Dataset) else load_dataset(source, self.runtime.store)
        return len(dataset.queries), len(dataset.corpus)
