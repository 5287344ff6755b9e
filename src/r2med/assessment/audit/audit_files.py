"""The HTML page of an audit."""

from __future__ import annotations

from pathlib import Path

from r2med.assessment.audit.audit_findings import Audit
from r2med.assessment.audit.audit_page import audit_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.html import page_html
from r2med.foundation.store.files import check_writable, write_atomically


def check_page(file: Path) -> None:
    """Raise UserError if the file has another ending than .html, or its folder cannot be written to."""
    if file.suffix != ".html":
        raise UserError(f"{file} does not end in .html: name a file such as {file.stem or 'audit'}.html")
    check_writable(file.parent, "out (--out)")


def write_page(audited: Audit, file: Path) -> None:
    """Write the page of an audit."""
    write_atomically(file, page_html(audit_page(audited)).encode("utf-8", "backslashreplace"))
