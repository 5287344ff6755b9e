"""The data of a system's page: scores by slices, cost by stage, failures by kind, settings, the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r2med.data.dataset_cards import cards, groups, home_group
from r2med.evaluation.comparison.standings import slice_figures
from r2med.evaluation.measure.slices import KINDS
from r2med.evaluation.records.record import Record, declared_stages
from r2med.evaluation.records.record_facts import StageFacts
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.publication.site.board_sets import board_sets, runs_of
from r2med.publication.site.leaderboard import DEMO, known_score

SLICE_TITLES = {
    "task": "By task",
    "scenario": "By scenario",
    "body-system": "By body system",
    "length": "By length of the query",
    "positives": "By number of relevant documents",
}
"""Kind of slices -> the title of their table."""


@dataclass(frozen=True)
class _ScoredSlice:
    """Some queries, and the scores of the systems that have all of them."""

    kind: str
    label: str
    queries: int
    scores: Mapping[str, Any]

    def of(self, system: str) -> dict[str, Any]:
        return {"label": self.label, "queries": self.queries, "score": self.scores[system]}


def system_values(
    collection: RecordCollection, names: Sequence[str], places: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield the content of each system's data file. `names` are the datasets in the order of their numbers.

    `places` are the folders of the user's datasets, as they were typed.
    """
    sets = board_sets(collection)
    cuts = [list(_slices(collection.on(each.datasets))) for each in sets]
    for system in collection.systems:
        records = collection.records(system)
        first = next(iter(records.values()))
        yield {
            "command": command(first, [run.dataset.name for run in runs_of(collection, system)], places),
            "settings": {**dict(_flat(first.settings)), **_prompts(first)},
            "versions": dict(first.versions),
            "records": [_record(records[name], position) for position, name in enumerate(names) if name in records],
            "slices": [
                [
                    {"title": SLICE_TITLES[kind], "slices": own}
                    for kind in KINDS
                    if (own := [each.of(system) for each in cut if each.kind == kind and system in each.scores])
                ]
                for cut in cuts
            ],
        }


def command(record: Record, datasets: Sequence[str], places: Mapping[str, str]) -> str:
    """Return the command that makes the records of a system again.

    A record contains only the name of its dataset. If its folder is not in `places`, the reader must fill in the path.
    """
    home = home_group(datasets[0]) if datasets else ""
    group = home if set(groups().get(home, ())) == set(datasets) else ""
    known = {*cards(), *groups()[DEMO]}
    typed = [places.get(name) or (name if name in known else f"path/to/{name}") for name in datasets]
    words = ["r2med", "run", record.system, "--data", group or ",".join(typed)]
    depth = record.settings.get("k")
    stages = declared_stages(record.settings)
    recorded = any(stage.get("source") == "recorded" and stage.get("llm") != "author" for stage in stages)
    return shlex.join([*words, *(["--k", str(depth)] if depth != 1000 else []), *(["--recorded"] if recorded else [])])


def _record(record: Record, dataset: int) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "created": record.created,
        "source": record.source,
        "key": record.key,
        "run": record.run.file if record.run else "",
        "seconds": record.seconds_per_query,
        "stages": [_stage(stage, record.settings) for stage in record.stages],
    }


def _stage(stage: StageFacts, settings: Mapping[str, Any]) -> dict[str, Any]:
    cost, inside = stage.cost, declared_stages(settings.get(stage.stage)) if stage.stage != "rerank" else ()
    return {
        "stage": stage.stage,
        "name": stage.name,
        "recorded": any(each.get("source") == "recorded" for each in inside),
        "seconds": cost.seconds,
        "prepared": stage.prepared.seconds,
        "calls": cost.calls,
        "tokens": cost.llm_tokens,
        "dollars": cost.dollars,
        "unpriced": cost.unpriced,
        "failures": stage.failures,
        "kinds": dict(stage.failure_kinds),
        "failed": dict(stage.failed),
        "repairs": dict(stage.repairs),
    }


def _prompts(record: Record) -> dict[str, str]:
    """Return whose prompts the rerankers read, if their authors have their own."""
    return {f"prompt of {stage.name}": stage.prompt for stage in record.stages if stage.prompt}


def _flat(settings: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each setting as a path and a value."""
    if isinstance(settings, Mapping) and settings:
        for name, value in settings.items():
            yield from _flat(value, f"{path}.{name}" if path else str(name))
    elif isinstance(settings, list) and settings:
        for number, value in enumerate(settings, 1):
            yield from _flat(value, f"{path} {number}")
    elif settings not in (None, "", [], {}):
        yield path, settings if isinstance(settings, str) else json.dumps(settings)


def _slices(collection: RecordCollection) -> Iterator[_ScoredSlice]:
    for kind in KINDS if collection.cells else ():
        cut = list(slice_figures(collection, kind))
        for each, figures in cut if len(cut) > 1 else ():
            by_system = zip(collection.systems, map(known_score, figures), strict=True)
            scores = {name: figure for name, figure in by_system if figure}
            yield _ScoredSlice(kind, each.label, len(each), scores)
