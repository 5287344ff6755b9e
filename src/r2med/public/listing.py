"""What a function returns that only shows something: a page for people, and the values behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page


@dataclass(frozen=True, repr=False)
class Listing:
    """A page for people, which a notebook shows, and the values behind it."""

    page: Page
    """The page."""
    value: Any
    """The same as plain values: what `--format json` prints."""

    def __repr__(self) -> str:
        return f"Listing({self.page.title!r})"

    def _repr_html_(self) -> str:
        return self.page._repr_html_()


def listed_lines(title: str, lines: list[str], value: Any) -> Listing:
    """Return a listing whose page is made of lines."""
    from r2med.foundation.pages.page import Page, Paragraph, Section

    return Listing(Page(title, [Section("", [Paragraph(line, no_wrap=True) for line in lines])]), value)
