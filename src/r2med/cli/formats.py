"""`--format`: the formats in which commands print their pages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page

NAMES = ("text", "markdown", "latex", "csv", "json", "html")


def _checked(name: str) -> str:
    """Return the name of a format. Raises UserError if there is no such format, before any work is done."""
    if name not in NAMES:
        raise unknown("format", name, NAMES)
    return name


Format = Annotated[
    str,
    typer.Option(
        "--format", metavar="NAME", help=f"Print it as {', '.join(NAMES[:-1])} or {NAMES[-1]}.", callback=_checked
    ),
]


def show_page(page: Page, form: str, value: Any = None) -> None:
    """Print a page in a format. `value` replaces the page in JSON, for commands with their own JSON shape.

    Raises UserError for LaTeX, which is only for tables, if the page has none.
    """
    from r2med.cli.console import console, print_json

    if form == "json":
        from r2med.foundation.pages.text_formats import page_value

        print_json(page_value(page) if value is None else value)
    elif form == "text":
        from r2med.foundation.pages.terminal import print_page

        print_page(page, console())
    else:
        from r2med.foundation.pages.html import page_html
        from r2med.foundation.pages.text_formats import page_csv, page_latex, page_markdown

        renderers = {"markdown": page_markdown, "latex": page_latex, "csv": page_csv, "html": page_html}
        text = renderers[form](page)
        if not text:
            raise UserError("there is no table here to write as LaTeX; --format markdown writes the text")
        # A file gets every character as it is; a terminal must not be steered by one.
        lines = map(printable, text.split("\n")) if sys.stdout.isatty() else [text]
        print("\n".join(lines), end="")
