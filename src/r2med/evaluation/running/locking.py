"""Decide an evaluation beforehand: `lock` writes its systems, settings and datasets, and `run` then does only that."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.data.given_data import given_data
from r2med.evaluation.comparison.one_group import of_one_group
from r2med.evaluation.measure.measures import HEADLINE_MEASURE, recorded_measure
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.used_labels import published_name
from r2med.evaluation.running.batch import plan_run
from r2med.evaluation.running.evaluation import DEPTH
from r2med.evaluation.running.lock_check import locked_settings
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.one_or_many import several
from r2med.foundation.runtime.runtime import Runtime, running
from r2med.foundation.runtime.setup import Setup
from r2med.systems.system import System


def lock(
    systems: object | Sequence[object],
    data: str | Path | Dataset | Sequence[str | Path | Dataset],
    file: Path | str = "plan.lock",
    *,
    k: int = DEPTH,
    measure: str = str(HEADLINE_MEASURE),
    baseline: str = "",
    expand: str | Sequence[str] = (),
    rerank: object | Sequence[object] = (),
    llms: str | Sequence[str] = (),
    samples: int = 1,
    suite: str = "",
    setup: Setup | Runtime | None = None,
    **settings: Any,
) -> Lock:
    """Write a lock: systems with all their settings, fingerprints of datasets, the measure and the pairs to compare.

    Nothing is searched or asked. Without a baseline, every pair of systems is compared. The other arguments are those
    of `run`. Raises UserError if a system cannot run.
    """
    with running(setup if setup is not None else Setup(**settings)) as runtime:
        plan = plan_run(
            several(systems),
            given_data(data),
            expand=several(expand),
            rerank=several(rerank),
            llms=several(llms),
            samples=samples,
            suite=suite,
            setup=runtime,
        )
        made = locked_plan(plan.systems, plan.datasets(), k, measure, baseline)
    made.write(Path(file))
    return made


def locked_plan(systems: Sequence[System], datasets: Sequence[Dataset], k: int, measure: str, baseline: str) -> Lock:
    """Return the lock of systems on datasets."""
    names = [system.name for system in systems]
    # A baseline is typed as any system is, and may not be in its canonical form.
    if baseline and (baseline := System.parse(baseline, systems[0].runtime).name) not in names:
        raise unknown("baseline", baseline, names)
    if len({dataset.name for dataset in datasets}) < len(datasets):
        raise UserError("two datasets have one name: a lock tells them apart by their names")
    bases = {dataset.name: published_name(dataset) for dataset in datasets}
    of_one_group(bases, named=True)  # otherwise no comparison could keep to the lock
    for system in systems:
        system.check(datasets)
    others = [name for name in names if name != baseline]
    return Lock(
        systems=tuple(names),
        datasets={dataset.name: dataset.fingerprint for dataset in datasets},
        k=k,
        settings={
            system.name: {dataset.name: locked_settings(system, dataset, k) for dataset in datasets}
            for system in systems
        },
        measure=recorded_measure(measure),
        baseline=baseline,
        pairs=tuple((name, baseline) for name in others) if baseline else tuple(combinations(names, 2)),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
