"""What `r2med list`, `show` and the commands of the cache show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.cli.generated import Shown
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.public.listing import Listing


def show_listing(listing: Listing) -> Shown:
    """Show a listing."""
    return Shown(listing.page, listing.value)


def show_nothing(result: None) -> None:
    """Show nothing: the function says all that there is to say."""


def show_name(listing: Listing, kind: str | None, form: str) -> Shown:
    """Show what a name means. Prompts are texts for people, and rows for a spreadsheet."""
    from dataclasses import replace

    from r2med.foundation.pages.page import Section, Table

    prompts = listing.value if kind == "prompts" else listing.value.get("prompts") if kind is None else None
    if form != "csv" or not prompts:
        return show_listing(listing)
    table = Table.of(("prompt", "file", "text"), [(title, *each.values()) for title, each in prompts.items()])
    return Shown(replace(listing.page, sections=[*listing.page.sections, Section("", [table])]))


def show_lines(listing: Listing) -> None:
    """Print a listing that is made of lines."""
    for section in listing.page.sections:
        for line in section.sentences:
            print(printable(line))
