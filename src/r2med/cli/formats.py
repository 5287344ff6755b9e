"""Print pages, texts and JSON on any terminal, pipe or file, in the format that `--format` names."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from r2med.foundation.pages.page import Page

NAMES = ("text", "markdown", "latex", "csv", "json", "html")

UNLIMITED = 100_000
"""Width of a pipe or a file, whose reader can scroll."""


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
    if form == "json":
        from r2med.foundation.pages.text_formats import page_value

        print_json(page_value(page) if value is None else value)
    elif form == "text":
        from r2med.foundation.pages.terminal import print_page

        with console() as output:
            print_page(page, output)
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


@contextmanager
def console() -> Iterator[Console]:
    """Yield the console of the standard output. It is as wide as the terminal; a pipe has no limit."""
    from rich.console import Console

    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        yield Console(highlight=False)
        return
    output = Console(highlight=False, width=UNLIMITED)
    with output.capture() as printed:
        yield output
    # Rich fills the last column of a table with spaces, up to its longest cell.
    print(re.sub(r" +$", "", printed.get(), flags=re.MULTILINE), end="")


def print_json(value: Any) -> None:
    """Print JSON with the characters that the output can show. All others are escaped."""
    for line in json.dumps(value, indent=1, ensure_ascii=False).split("\n"):
        signs = (sign if printable(sign) == sign else json.dumps(sign)[1:-1] for sign in line)
        print(line if printable(line) == line else "".join(signs))
