"""The formats of a page besides the terminal's: name -> the function that writes it."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page

FORMATS: Mapping[str, str] = {
    "markdown": "markdown:page_markdown",
    "latex": "latex:page_latex",
    "csv": "csv_text:page_csv",
    "json": "json_value:page_json",
    "html": "html:page_html",
}
"""Name -> MODULE:NAME of a function in this room that takes a Page and returns its text. `--format` offers all."""


def rendered(page: Page, form: str) -> str:
    """Return a page in one of `FORMATS`."""
    text: str = resolve_name(f"r2med.foundation.pages.{FORMATS[form]}")(page)
    return text
