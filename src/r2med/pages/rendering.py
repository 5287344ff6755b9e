"""The formats of a page besides the terminal's: name -> the function that writes it."""

from __future__ import annotations

import json
from collections.abc import Callable

from r2med.pages.page import Page


def rendered(page: Page, form: str) -> str:
    """Return a page in one of `FORMATS`."""
    return FORMATS[form](page)


def _markdown(page: Page) -> str:
    from r2med.pages.markdown import page_markdown

    return page_markdown(page)


def _latex(page: Page) -> str:
    from r2med.pages.latex import page_latex

    return page_latex(page)


def _csv(page: Page) -> str:
    from r2med.pages.csv_text import page_csv

    return page_csv(page)


def _html(page: Page) -> str:
    from r2med.pages.html import page_html

    return page_html(page)


def _json(page: Page) -> str:
    from r2med.pages.json_value import page_value

    return json.dumps(page_value(page), indent=1, ensure_ascii=False) + "\n"


FORMATS: dict[str, Callable[[Page], str]] = {
    "markdown": _markdown,
    "latex": _latex,
    "csv": _csv,
    "json": _json,
    "html": _html,
}
