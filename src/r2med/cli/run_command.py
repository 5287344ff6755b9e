"""What `r2med run` shows: a table of scores, and what failed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2med.cli.generated import INCOMPLETE, Shown
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.evaluation.running.results import Results


def show_results(results: Results, out: str | Path, systems: Any, data: Any, lock: Any, form: str) -> Shown:
    """Show the scores. If nothing could be evaluated, and for one reason, this is an error."""
    from r2med.evaluation.running.run_page import failure_lines, run_page

    if form != "json" and not results.records and len(results.errors) == 1:
        raise UserError(next(iter(results.errors)))
    if form == "text":
        print()
    for line in failure_lines(results.records) if form in ("json", "csv") else ():
        print(printable(line), file=sys.stderr)  # where the exit code is 0 and no page shows it
    page = run_page(results, results.measure, Path(out), demo=not systems and not data and not lock)
    return Shown(page, [cell.summary() for cell in results], 0 if results.complete else INCOMPLETE)
