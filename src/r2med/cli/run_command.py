"""What `r2med run` shows: a table of scores, and what failed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from r2med.cli.generated import INCOMPLETE, Shown
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.flags import OUTPUT, Flag
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.evaluation.running.results import Results


COSTS = ("seconds", "dollars", "tokens")
"""Orders of rows by a column of the table of costs."""
MORE_TABLES = "--all-tables shows costs, averages by task and explanations too."


def show_results(
    results: Results,
    out: str | Path,
    systems: Any,
    data: Any,
    lock: Any,
    sort: str | None,
    form: str,
    *,
    all_tables: Annotated[
        bool, Flag("Also print averages by task, costs, aspects and explanations, as all other formats do.", OUTPUT)
    ] = False,
) -> Shown:
    """Show the scores. If nothing could be evaluated, and for one reason, this is an error."""
    from r2med.evaluation.running.run_page import failure_lines, run_page

    if form != "json" and not results.records and len(results.errors) == 1:
        raise UserError(next(iter(results.errors)))
    if form == "text":
        print()
    for line in failure_lines(results.records) if form in ("json", "csv") else ():
        print(printable(line), file=sys.stderr)  # where the exit code is 0 and no page shows it
    is_demo = not systems and not data and not lock
    with_all_tables = all_tables or form != "text" or sort in COSTS
    page = run_page(results, Path(out), is_demo, with_all_tables)
    if not with_all_tables:
        *sections, last = page.sections
        page = replace(page, sections=[*sections, replace(last, parts=[*last.parts, MORE_TABLES])])
    summaries = results.summaries() if form == "json" else None
    return Shown(page, summaries, 0 if results.complete else INCOMPLETE)
