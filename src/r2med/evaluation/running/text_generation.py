"""Let an LLM write the texts of an expansion for every query, and keep them in the layout of the benchmark's own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from r2med.data import Dataset
from r2med.data.dataset_word import each_dataset
from r2med.data.loading import announce_fetching, load_dataset
from r2med.evaluation.running.plan_page import Plan, PlanRow
from r2med.evaluation.running.planning import planned_data, prompt_notes, summed
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.names import kind_of, known_names, stage_class
from r2med.foundation.core.spec import Call, parse_stage
from r2med.foundation.runtime import stages
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store.files import refuse_other_case
from r2med.models.llm.llm_cards import resolve_llm
from r2med.systems.expand.generations import NotWrittenError, generations_path, write_generations
from r2med.systems.system.system import timed_expansion
from r2med.systems.system.system_specs import llm_names

log = logging.getLogger("r2med")


@dataclass(frozen=True)
class GeneratedTexts:
    """The texts of one dataset: their file, and how many queries have one."""

    dataset: str
    """The name of the dataset."""
    file: Path | None
    """None if the file was not written."""
    answered: int
    """Number of queries with a text."""
    queries: int
    """Number of queries."""
    problem: str = ""
    """Why the file was not written, or is not complete."""


@dataclass(frozen=True)
class GenerationPlan:
    """An expansion by one LLM and the datasets that it writes texts for. Nothing is asked yet."""

    call: Call
    expander: Stage
    sources: Sequence[str | Dataset]
    runtime: Runtime

    @cached_property
    def datasets(self) -> Sequence[Dataset]:
        """The datasets, which are loaded here. Raises UserError for a fault that would stop the writing later."""
        announce_fetching([source for source in self.sources if isinstance(source, str)], self.runtime.store)
        datasets = [
            source if isinstance(source, Dataset) else load_dataset(source, self.runtime.store)
            for source in self.sources
        ]
        self._check(datasets)
        return datasets

    def _check(self, datasets: Sequence[Dataset]) -> None:
        _check_names(datasets)
        self.expander.check(datasets, self.runtime)

    def plan(self) -> Plan:
        """Return what the LLM would be asked. Nothing is asked, and data that are not here are known by their cards."""
        if not self.expander.asks(self.runtime):
            return Plan(())
        with planned_data(self.sources, self.runtime, reads=True) as data:
            read = [each.dataset for each in data if each.dataset is not None]
            if len(read) == len(data):
                self._check(read)
            needs = summed(self.expander.needs(each.size, self.runtime) for each in data)
            example = self.expander.example(read[0], self.runtime) if read else None
        prompts = {str(self.call): example} if example else {}
        return Plan((PlanRow(str(self.call), needs),), prompts, prompt_notes(self.sources, self.runtime))

    @property
    def llm(self) -> str:
        """The name of the LLM. A trained rewriter has its own LLM."""
        return next(iter(self.call.arguments), self.call.name)

    def write(
        self,
        out: Path,
        overwrite: bool = False,
        announce: Callable[[str], None] = lambda step: None,
    ) -> list[GeneratedTexts]:
        """Write the texts of each dataset. `announce` is called before each dataset.

        Raises UserError if `out` has texts of a dataset or LLM whose name differs only in capital letters.
        """
        for dataset in self.datasets:  # before anything is paid for
            refuse_other_case(out / dataset.name / generations_path(self.call.name, self.llm), out)
        made = []
        for dataset in self.datasets:
            announce(f"{dataset.name} · {self.call}")
            made.append(self._written(dataset, out, overwrite))
        return made

    def _written(self, dataset: Dataset, out: Path, overwrite: bool) -> GeneratedTexts:
        expansion = timed_expansion(self.expander, dataset, self.runtime)
        for notice in expansion.notices:
            log.info("%s", notice)
        queries = len(expansion.queries)
        answered = queries - expansion.failures
        try:
            file = write_generations(expansion, dataset, out, self.call.name, self.llm, overwrite=overwrite)
        except NotWrittenError as reason:
            return GeneratedTexts(dataset.name, None, answered, queries, str(reason))
        problem = "the budget ended before all queries had a text" if "budget" in expansion.failure_kinds else ""
        return GeneratedTexts(dataset.name, file, answered, queries, problem)


def plan_generation(method: str, data: Sequence[str | Path | Dataset], llm: str, runtime: Runtime) -> GenerationPlan:
    """Return the plan of `generate`. Raises UserError for a method that writes no texts. No data are read."""
    call = _call(method, llm)
    for name in call.arguments:
        resolve_llm(name, runtime.setup)
    expander = stages.stage_of(call, "expand")
    return GenerationPlan(call, expander, each_dataset(data), runtime)


def _call(method: str, llm: str) -> Call:
    """Return the expansion with its LLM."""
    asking = [name for name in known_names("expand") if stage_class(name, "expand").takes == "llm"]
    call, *others = parse_stage(method)
    kind = kind_of(call.name)
    if kind == "retrieve" and stage_class(call.name, kind).takes == "llm":
        raise UserError(f"{method} returns documents, not a text: use r2med run '{method}'")
    if others or call.name not in asking:
        raise UserError(f"{method} asks no LLM for texts{nearest(call.name, asking)}: {', '.join(asking)} do")
    if len(call.arguments) > 1 or call.depth is not None:
        raise UserError(f"{call}: write the name of one LLM first, then settings as KEY=VALUE")
    named = call.arguments[0] if call.arguments else llm
    if not named and "llm" in stage_class(call.name, "expand").defaults(call.name):
        return call
    if not named:
        raise UserError(f"{call} names no LLM: write '{call.name}(o3-mini)' (r2med list llms shows all)")
    if llm and named != llm:
        raise UserError(f"{call} and {llm} are two LLMs: only one LLM writes at a time")
    if "query" in dict(call.settings):
        raise UserError(f"{call}: query is a setting of the search: give it to r2med run, which searches the texts")
    if len(llm_names([named])) > 1:
        raise UserError(f"{named} names several LLMs: only one LLM writes at a time")
    return Call(call.name, (named,), call.settings)


def _check_names(datasets: Sequence[Dataset]) -> None:
    """Raise UserError if two datasets would be written into one folder."""
    for name, count in Counter(dataset.name.casefold() for dataset in datasets).items():
        if count > 1:
            named = " and ".join(dict.fromkeys(each.name for each in datasets if each.name.casefold() == name))
            raise UserError(f"{count} datasets are named {named}, so they would share a folder: generate one at a time")
