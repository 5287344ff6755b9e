"""Build a benchmark from a plan in one call: run its steps, then write the dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.construction.build_plan import BuildPlan
from r2med.construction.pipeline import BuildFolder, Done
from r2med.construction.publish.dataset_folder import write_output
from r2med.foundation.engine.reporting import announcing
from r2med.foundation.runtime.runtime import Runtime


@dataclass(frozen=True)
class Build:
    """A finished build: its steps and the folder of its dataset."""

    folder: BuildFolder
    """The plan and the folder of the build."""
    steps: Sequence[Done]
    """The result of each step."""
    dataset: Path | None
    """Folder of the dataset; None if nothing was judged yet."""


def build(plan: BuildPlan, out: Path, runtime: Runtime) -> Build:
    """Build a benchmark and reuse the steps that were built before.

    Raises UserError if the budget is used up, or no question has a relevant document.
    """
    made = BuildFolder(plan, out)
    steps = made.run(runtime, announcing(len(plan.steps)))
    return Build(made, steps, write_output(made, runtime))
