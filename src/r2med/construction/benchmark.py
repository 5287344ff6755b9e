"""Build a benchmark by a plan in one call: run its steps, then write the dataset of what was judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.construction.pipeline import Build, Done, Plan
from r2med.construction.publish.output import write_output
from r2med.runtime.runtime import Runtime, running
from r2med.runtime.setup import Setup


@dataclass(frozen=True)
class Built:
    """What a build left."""

    build: Build
    steps: Sequence[Done]
    dataset: Path | None
    """The folder of the dataset; None where nothing was judged yet."""


def build(
    plan: Plan | Path | str,
    out: Path | str,
    setup: Setup | Runtime | None = None,
    announce: Callable[[str], None] = lambda step: None,
    **settings: Any,
) -> Built:
    """Build a benchmark; what was built before is used again. `settings` are fields of `Setup`.

    Raises UserError if the budget is used up, or no question has a positive.
    """
    read = plan if isinstance(plan, Plan) else Plan.read(plan)
    made = Build(read, Path(out))
    with running(setup if setup is not None else read.setup(**settings)) as runtime:
        steps = made.run(runtime, announce)
        return Built(made, steps, write_output(made, runtime))
