"""The files of an audit: its HTML page, and its label for a README."""

from __future__ import annotations

from pathlib import Path

from r2med.assessment.audit.audit_findings import Audit
from r2med.assessment.audit.audit_page import audit_page
from r2med.assessment.audit.svg_label import audit_label
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.pages.html import page_html
from r2med.foundation.store.files import write_atomically
from r2med.foundation.store.writable import check_writable


def check_files(page: Path | None, label: Path | None) -> None:
    """Raise UserError if a file has another ending, or its folder cannot be written to."""
    for file, ending, setting in ((page, ".html", "out"), (label, ".svg", "label")):
        if file is None:
            continue
        if file.suffix != ending:
            raise UserError(f"{file} does not end in {ending}: name a file such as {file.stem or 'audit'}{ending}")
        check_writable(file.parent, Setting("audit", **{setting: ...}))


def write_files(audited: Audit, page: Path | None, label: Path | None) -> None:
    """Write the page and the label of an audit, if they are wanted."""
    if page is not None:
        _write(page, page_html(audit_page(audited)))
    if label is not None:
        _write(label, audit_label(audited))


def _write(file: Path, text: str) -> None:
    write_atomically(file, text.encode("utf-8", "backslashreplace"))
