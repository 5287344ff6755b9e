"""What `r2med build run` and `build example` show."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import Shown
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.construction.benchmark import Build
    from r2med.construction.pipeline import Done
    from r2med.foundation.core.needs import Needs


def show_built(built: Build, form: str) -> Shown:
    """Show what each step kept, and the next command."""
    from r2med.construction.build_page import steps_page
    from r2med.foundation.pages.page import Paragraph, Section

    page = steps_page(built.folder, built.steps)
    if form == "text":
        page = replace(page, sections=[*page.sections, Section("", [Paragraph(_next(built), no_wrap=True)])])
    return Shown(page, [asdict(each) if each else None for each in built.steps])


def _next(built: Build) -> str:
    if built.dataset is None:
        return _why_no_dataset(built.steps)
    folder = shlex.quote(str(built.dataset))
    return f"{built.dataset}/datasheet.html describes it. Next: r2med run bm25 --data {folder}"


def _why_no_dataset(steps: Sequence[Done]) -> str:
    """Return why a build wrote no dataset: nothing was judged, because no step judges or a step kept nothing."""
    if not any(done.stream == "judgements" for done in steps):
        return "No dataset was written, because no step of the plan judges candidates."
    empty = next((f": step {done.number}, {done.step}, kept nothing" for done in steps if not done.kept), "")
    return f"No dataset was written, because no candidate was judged{empty}."


def show_build_calls(steps: Sequence[tuple[str, Needs | None]]) -> Shown:
    """Show what a build would ask at most."""
    from r2med.construction.build_page import calls_page

    return Shown(calls_page(steps))


def show_example_plan(plan: Path, out: str | Path) -> None:
    """Show the plan, and how it is built."""
    built = shlex.quote(str(Path(out) / "built"))
    print(printable(f"{plan} is written. Next: r2med build run {shlex.quote(str(plan))} -o {built}"))
    print("Its answers are scripted by a person, no model is asked; --llm NAME asks one instead.")
