"""What `r2med data import` shows: the columns of each table, and what was written."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from r2med.foundation.core.errors import UserError
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset
    from r2med.data.tables.columns import Part
    from r2med.data.tables.importing import Import

SHOWN = 3
"""Number of rows of each table that are shown."""
LETTERS = 60
"""Characters of a cell that are shown."""
UNUSED = 20
"""Number of unused columns that are named."""


def confirm_import(plan: Import, yes: bool) -> None:
    """Show the columns of each table, and ask if they are right where somebody can answer."""
    _show_plan(plan)
    asked = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    if asked and not typer.confirm("Is that right?", default=True):
        raise UserError(
            "nothing was written: name the columns, as in --id COLUMN --text COLUMN (r2med data import --help)"
        )


def show_import(dataset: Dataset, out: str | Path) -> int:
    """Show the problems of the new dataset, where its texts are, and the next command. Ends with 2 if it has any."""
    from r2med.data.check import check
    from r2med.foundation.store import default_store

    problems = check(out)
    for line in (*problems.lines(), *(f"note: {notice}" for notice in problems.notices)):
        print(printable(line))
    folder = shlex.quote(str(out))
    languages = dataset.card.languages if dataset.card else ()
    following = _next_command(folder, bool(dataset.qrels), languages[0] if languages else "en")
    clearing = f"r2med cache clear --dataset {folder} --yes"
    print(printable(f"The cache holds a copy of its texts ({default_store().root}). To remove it: {clearing}"))
    print(f"{printable(str(out))} is written. Next: {printable(following)}")
    return 2 if problems.problems else 0


def _show_plan(plan: Import) -> None:
    """Print three rows of each table under the roles of its columns, then the unused columns and the counts."""
    from r2med.cli.formats import console
    from r2med.foundation.pages.page import Table
    from r2med.foundation.pages.terminal import plain, print_table

    notices = plan.notices  # before anything is printed: what cannot be read ends here
    with console() as output:
        for part in plan.parts:
            output.print(plain(f"{part.table}: {part.kind}", "bold"))
            print_table(Table.of(_heads(part), _rows(part)), output, {})
            used = {*part.columns.values(), *part.texts}
            unused = [column for column in part.table.columns if column not in used]
            if unused:
                named = f"{', '.join(unused[:UNUSED])}{', …' if len(unused) > UNUSED else ''}"
                output.print(plain(f"not used: {named}{_long_unused(part, unused)}", "dim"), soft_wrap=True)
            output.print()
        for notice in notices:
            output.print(plain(f"note: {notice}"), soft_wrap=True)
        output.print(plain(_counts(plan)), soft_wrap=True)
        output.print(plain(plan.language_line), soft_wrap=True)


def _long_unused(part: Part, unused: Sequence[str]) -> str:
    """Return the flags that read also the unused columns with long texts; empty if there are none."""
    from r2med.data.tables.running_text import has_long_cells

    long = [column for column in unused if has_long_cells(part.table, column)]
    if part.kind != "documents" or not long:
        return ""
    read = part.texts or (part.columns["text"],)
    flags = " ".join(f"--text {shlex.quote(column)}" for column in (*read, *long))
    return f" ({', '.join(long)}: texts; to read them too, type {flags})"


def _next_command(folder: str, judged: bool, language: str) -> str:
    """Return the command that searches the new dataset, with the analysis of its language."""
    if language == "en":
        return f"r2med run bm25 --data {folder}" if judged else f"r2med search {folder} 'a question'"
    system = f"'bm25(language={language})'"
    return f"r2med run {system} --data {folder}" if judged else f"r2med search {folder} 'a question' --system {system}"


def _counts(plan: Import) -> str:
    counts = [f"{number:,} {kind.removesuffix('s') if number == 1 else kind}" for kind, number in plan.counts.items()]
    return f"{', '.join(counts)} ({plan.relevant:,} relevant)" if plan.counts["judgements"] else ", ".join(counts)


def _heads(part: Part) -> list[str]:
    columns = {**part.columns, **({"text": " + ".join(part.texts)} if part.texts else {})}
    return [f"{role.replace('_', '-')} = {column}" for role, column in columns.items()]


def _rows(part: Part) -> list[list[str]]:
    rows = [list(part.cells(row).values()) for row in part.table.sample[:SHOWN]]
    texts = [[cell if isinstance(cell, str) else "; ".join(cell) for cell in row] for row in rows]
    short = [[" ".join(cell[: 4 * LETTERS].split()) for cell in row] for row in texts]
    return [[f"{cell[: LETTERS - 1]}…" if len(cell) > LETTERS else cell for cell in row] for row in short]
