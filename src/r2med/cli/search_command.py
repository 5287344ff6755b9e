"""What `r2med search` shows: the passages that a system finds for a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.cli.generated import Shown

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page
    from r2med.systems.system.question import SearchResult

LETTERS = 320
"""Characters of a passage that are shown."""


def show_found(found: SearchResult, form: str) -> Shown:
    """Show the passages with the words that match, or as one table."""
    from dataclasses import asdict

    page = _marked_page(found) if form in ("text", "html") else _table_page(found)
    return Shown(page, asdict(found))


def _marked_page(answer: SearchResult) -> Page:
    """Return the passages to read, with their matching words marked."""
    from r2med.foundation.pages.page import Page, Paragraph, Section
    from r2med.foundation.text.highlight import Words
    from r2med.systems.system.question import NOTHING_FOUND

    words = Words.of(answer.question, answer.generated, answer.language)
    written = [Paragraph.excerpt("written:", text, words, LETTERS) for text in answer.generated]
    sections = [Section("", written)] if written else []
    for rank, passage in enumerate(answer.passages, 1):
        parts = [Paragraph.excerpt("", passage.text, words, LETTERS)]
        sections.append(Section(f"{rank}. {passage.id}", parts, aside=f"{passage.score:.4g}"))
    if not answer.passages:
        sections.append(Section("", [NOTHING_FOUND]))
    return Page(answer.question, sections, kind="search")


def _table_page(answer: SearchResult) -> Page:
    """Return the whole passages as one table."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table, table_page

    columns = (Column("rank", "integer"), Column("document"), Column("score", "number", 4), Column("passage"))
    rows = [(rank, found.id, found.score, found.text) for rank, found in enumerate(answer.passages, 1)]
    return table_page(answer.question, Table(columns, rows))
