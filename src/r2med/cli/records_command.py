"""What `r2med records` shows: the score of an import, and the files of an export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import generated
from r2med.cli.help_pages import Application
from r2med.foundation.text.terminal_text import printable, quoted
from r2med.public.record_functions import export_records, import_records

if TYPE_CHECKING:
    from r2med.evaluation.records.record import Record


def show_imported(record: Record, out: str | Path) -> None:
    """Print the score of an imported record."""
    print(printable(f"{record.display_name} on {record.dataset.name}: nDCG@10 {100 * record.mean['nDCG@10']:.2f}"))
    print(printable(f"compare it with others: r2med compare --results {quoted(out)}"))


def show_files(files: Sequence[Path]) -> None:
    """Print the new files."""
    for file in files:
        print(printable(str(file)))


records = Application(help="Write records in the format of another tool, or read them from it.", no_args_is_help=True)
records.command("import")(generated(import_records, show_imported))
records.command("export")(generated(export_records, show_files))
