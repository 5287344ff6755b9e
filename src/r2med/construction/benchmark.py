"""Build a benchmark from a plan in one call: run its steps, then write the dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.construction.build_plan import BuildPlan
from r2med.construction.pipeline import BuildFolder, Done
from r2med.construction.publish.dataset_folder import write_output
from r2med.foundation.runtime.runtime import Runtime, running
from r2med.foundation.runtime.setup import Setup


@dataclass(frozen=True)
class Build:
    """A finished build: its steps and the folder of its dataset."""

    folder: BuildFolder
    """The plan and the folder of the build."""
    steps: Sequence[Done]
    """The result of each step."""
    dataset: Path | None
    """Folder of the dataset; None if nothing was judged yet."""


def build(
    plan: BuildPlan | Path | str,
    out: Path | str,
    setup: Setup | Runtime | None = None,
    announce: Callable[[str], None] = lambda step: None,
    **settings: Any,
) -> Build:
    """Build a benchmark and reuse the steps that were built before. `settings` are fields of `Setup`.

    Raises UserError if the budget is used up, or no question has a relevant document.
    """
    read = plan if isinstance(plan, BuildPlan) else BuildPlan.read(plan)
    made = BuildFolder(read, Path(out))
    with running(setup if setup is not None else read.setup(**settings)) as runtime:
        steps = made.run(runtime, announce)
        return Build(made, steps, write_output(made, runtime))
