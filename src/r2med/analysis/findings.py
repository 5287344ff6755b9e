"""What a report found, as a file: one sentence for each analysis, and the data that it is about."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from r2med.analysis.material import Material
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Column
from r2med.foundation.pages.csv_text import table_csv
from r2med.foundation.pages.page import Section, Table

FINDINGS_FILE = "findings.csv"
_COLUMNS = ("analysis", "finding", "data")


def findings_csv(sections: Sequence[Section], given: Material) -> str:
    """Return the first sentences of each section as CSV, with the fingerprints of the datasets."""
    data = " ".join(sorted(_fingerprints(given)))
    rows = [(section.title, section.lead, data) for section in sections if section.lead]
    return table_csv(Table(tuple(map(Column, _COLUMNS)), rows))


def _fingerprints(given: Material) -> set[str]:
    """Return the fingerprints of the named datasets, and of those of the records that were read."""
    cells = vars(given)["collection"].cells.values() if "collection" in vars(given) else ()
    named = given.datasets.values() if given.data else ()
    return {each.record.dataset.fingerprint for each in cells} | {dataset.fingerprint for dataset in named}


def read_findings(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return fingerprints of data -> analyses and what they found. Empty if the folder holds no report."""
    path = folder / FINDINGS_FILE
    if not path.is_file():
        return {}
    found: dict[str, list[tuple[str, str]]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            for row in csv.DictReader(lines):
                found.setdefault(row["data"], []).append((row["analysis"], row["finding"]))
    except (KeyError, ValueError, csv.Error, OSError):
        raise UserError(f"{path} is not a file of r2med analyse: delete it, or write the report again") from None
    return found
