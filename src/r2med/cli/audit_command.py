"""`r2med audit`: can the labels of a dataset be trusted?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page


def audit(
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET", help="A name or a folder.", show_default=False, autocompletion=completion.datasets
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Audit this file of judgements instead of a dataset: a part of the checks.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with the records of systems. Default: results, if it has records of the dataset.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Write the HTML page to this file.", show_default=False),
    ] = None,
    label: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a label for a README to this SVG file.", show_default=False),
    ] = None,
    form: Format = "text",
    as_json: flags.AsJSON = False,
) -> None:
    """Check the labels and texts of a dataset. Each check is sound, needs a look or is broken, with the evidence."""
    from r2med.assessment.audit.audit_page import PAGE_ROWS, TERMINAL_ROWS, audit_page
    from r2med.assessment.audit.checks import CHECKS
    from r2med.assessment.audit.checks import audit as find
    from r2med.assessment.audit.svg_label import audit_label
    from r2med.cli.progress import steps
    from r2med.foundation.pages.html import page_html

    for file, ending in ((out, ".html"), (label, ".svg")):
        if file is not None:
            _check_file(file, ending)
    with steps(len(CHECKS)) as step:
        audited = find(dataset, qrels=qrels, results=results, announce=step)
    if out is not None:
        _write(out, page_html(audit_page(audited)))
    if label is not None:
        _write(label, audit_label(audited))
    in_terminal = form == "text" and not as_json
    page = audit_page(audited, TERMINAL_ROWS if in_terminal else PAGE_ROWS, with_sound=not in_terminal)
    show_page(page, form, as_json, audited.model_dump(mode="json"))
    if audited.verdict == "broken":
        raise typer.Exit(1)


def _check_file(file: Path, ending: str) -> None:
    """Raise UserError if a file has another ending, or its folder cannot be written to."""
    from r2med.foundation.core.errors import UserError

    if file.suffix != ending:
        raise UserError(f"{file} does not end in {ending}: name a file such as {file.stem or 'audit'}{ending}")
    flags.check_writable(file.parent)


def _write(file: Path, text: str) -> None:
    from r2med.foundation.store.files import write_atomically

    write_atomically(file, text.encode("utf-8", "backslashreplace"))
