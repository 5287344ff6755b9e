"""Decide an evaluation beforehand: a lock has its systems, settings and datasets, and `run` then does only that."""

from __future__ import annotations

import datetime
from itertools import combinations

from r2med.evaluation.comparison.one_group import of_one_group
from r2med.evaluation.records.lock_file import Lock
from r2med.evaluation.records.used_labels import published_name
from r2med.evaluation.running.batch import RunPlan
from r2med.evaluation.running.lock_check import locked_settings
from r2med.foundation.core.errors import UserError, unknown
from r2med.systems.system import System


def locked_plan(plan: RunPlan, baseline: str) -> Lock:
    """Return the lock of the systems of a plan on its datasets."""
    systems, datasets = plan.systems, plan.datasets()
    names = [system.name for system in systems]
    # A baseline is typed as any system is, and may not be in its canonical form.
    if baseline and (baseline := System.parse(baseline, systems[0].runtime).name) not in names:
        raise unknown("baseline", baseline, names)
    if len({dataset.name for dataset in datasets}) < len(datasets):
        raise UserError("two datasets have one name: a lock tells them apart by their names")
    bases = {dataset.name: published_name(dataset) for dataset in datasets}
    of_one_group(bases, named=True)  # otherwise no comparison could keep to the lock
    for system in systems:
        system.check(datasets, plan.repeats)
    others = [name for name in names if name != baseline]
    return Lock(
        systems=tuple(names),
        datasets={dataset.name: dataset.fingerprint for dataset in datasets},
        k=plan.k,
        settings={
            system.name: {dataset.name: locked_settings(system, dataset, plan.k) for dataset in datasets}
            for system in systems
        },
        measure=plan.measure,
        baseline=baseline,
        pairs=tuple((name, baseline) for name in others) if baseline else tuple(combinations(names, 2)),
        repeats=plan.repeats,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
