"""Build a benchmark from a plan, and look at what each step kept and left out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from r2med.foundation.core.flags import Argument, Flag, SetupFlags
from r2med.foundation.text.terminal_text import quoted
from r2med.public import shared_flags as flags

if TYPE_CHECKING:
    from r2med.construction.benchmark import Build
    from r2med.construction.build_plan import BuildPlan
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.public.listing import Listing


def run_build(
    plan: Annotated[BuildPlan | str | Path, Argument("The plan.", metavar="PLAN.toml", kind=Path)],
    out: Annotated[str | Path, Flag("Folder of the build.", names=("--out", "-o"), metavar="DIR")],
    setup: Setup | Runtime | None = None,
    **settings: Annotated[
        Any,
        SetupFlags(
            *("device", "model_paths", "engine", "offline", "llm"),
            *flags.QUESTIONS,
            llm="The LLM of steps that name none, instead of the plan's.",
        ),
    ],
) -> Build:
    """Build a benchmark from a plan. Steps that were built before are used again.

    `settings` are fields of `Setup`; they take precedence over those of the plan. Raises UserError if the budget is
    used up, or no question has a relevant document.
    """
    from r2med.construction.benchmark import build
    from r2med.construction.build_plan import BuildPlan
    from r2med.construction.pipeline import BuildFolder
    from r2med.foundation.runtime.runtime import running
    from r2med.foundation.store.files import check_writable
    from r2med.public.call_plan import planned

    read = plan if isinstance(plan, BuildPlan) else BuildPlan.read(plan)
    with running(setup if setup is not None else read.setup(**settings)) as runtime:
        folder = BuildFolder(read, Path(out))
        planned(lambda: [(str(step), calls) for step, calls in folder.calls(runtime)])
        check_writable(Path(out), "out (--out)")
        return build(read, Path(out), runtime)


def show_build(
    folder: Annotated[str | Path, Argument("The folder of a build.", metavar="DIR")],
    item: Annotated[str | None, Argument("The id of a question, page or chunk: show it after each step.")] = None,
    step: Annotated[
        int | None, Flag("Show items of this step, by its number. With the other options: the last step.", low=1)
    ] = None,
    rejected: Annotated[bool, Flag("Show items that the step left out.")] = False,
    count: Annotated[int | None, Flag("Number of items, drawn at random. Default: 5.", names=("-n",), low=1)] = None,
    seed: Annotated[int, Flag("Seed of the random sample.")] = 0,
) -> Listing:
    """Show what each step kept and left out, and why; or one item after each step; or some items of a step."""
    from dataclasses import asdict

    from r2med.construction.build_page import build_page, items_page
    from r2med.construction.pipeline import BuildFolder
    from r2med.foundation.core.errors import UserError
    from r2med.public.listing import Listing

    made = BuildFolder.open(folder)
    if item is not None:
        if step or rejected or count:
            raise UserError("an item is shown after each step: leave out --step, --rejected and -n, or the item")
        items = [(f"{number}. {name}: {title}", fields) for number, name, (title, fields) in made.trace(item)]
        if not items:
            raise UserError(f"no item {item!r} in {folder}: r2med build show {quoted(folder)} -n 5 shows some")
    elif step or rejected or count:
        items = made.sample(step or 0, count or 5, seed, rejected=rejected)
    else:
        return Listing(build_page(made), [asdict(each) if each else None for each in made.status()])
    return Listing(items_page(f"Items of {folder}", items), [{"title": title, **fields} for title, fields in items])


def example_build(
    name: Annotated[str, Argument("Name of the example.", metavar="forum|exam|cases")],
    out: Annotated[str | Path, Flag("The new folder.", names=("--out", "-o"), metavar="DIR")],
) -> Path:
    """Write a small example plan with its sources and scripted answers. It can be built offline.

    Return the file of the plan. Raises UserError if no example has this name.
    """
    from r2med.construction.example_plans import write_example_plan

    return write_example_plan(name, Path(out))
