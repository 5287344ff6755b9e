"""Pages as GitHub's Markdown. All data is escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from r2med.foundation.pages.cells import Column, Marked
from r2med.foundation.pages.page import (
    Bars,
    Bullets,
    Content,
    Curves,
    Dots,
    MarkedText,
    Note,
    Page,
    Section,
    Table,
    Verbatim,
)

_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~!$"})


def escaped(text: str) -> str:
    """Return a text on one line in which nothing is markup: names have stars, pipes and angles of their own."""
    return " ".join(text.split()).translate(_SIGNS)


def page_markdown(page: Page) -> str:
    """Return a page as Markdown."""
    facts = Table((Column(""), Column(""), Column("")), page.facts) if page.facts else None
    blocks = [
        f"# {escaped(page.title)}" if page.title else "",
        escaped(page.about),
        escaped(page.summary),
        *(_table(facts) if facts else ()),
    ]
    for section in page.sections:
        blocks += _section(section)
    return "\n\n".join([*filter(None, blocks), *filter(None, [escaped(page.foot)])]) + "\n"


def table_markdown(table: Table) -> str:
    """Return a table, and its title and note below it: as much as a paper's table has."""
    return "\n\n".join(filter(None, (_rows(table), escaped(table.title), escaped(table.note)))) + "\n"


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"## {escaped(f'{section.title} {section.aside}')}"
    yield escaped(section.lead)
    for part in section.parts:
        yield from _part(part)
    if section.notes:
        yield "\n".join(f"- {escaped(note)}" for note in section.notes)


def _part(part: Content) -> Iterator[str]:
    match part:
        case str():
            yield escaped(part)
        case Note():
            text = escaped(part.text)
            yield f"**{text}**" if part.tone == "strong" and text else text
        case Bullets():
            yield "\n".join(f"- {escaped(text)}" for text in part.texts)
        case Verbatim():
            yield f"**{escaped(part.title)}**"
            yield "\n".join(f"    {line}" for line in part.text.splitlines())
        case MarkedText():
            # An escaped piece loses the spaces at its ends: the whole text is escaped instead, without its marks.
            yield f"**{escaped(part.label)}** {escaped(''.join(text for text, _ in part.pieces))}"
        case Table():
            yield from _table(part)
        case Bars() | Dots() | Curves():
            yield from _table(part.table)


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield f"**{escaped(table.title)}**"
    yield _rows(table)
    yield escaped(table.note)


def _rows(table: Table) -> str:
    columns = table.shown_columns
    rules = ["--:" if column.is_numeric else ":--" for column in columns]
    rows = zip(*([_cell(cell) for cell in column.cells] for column in columns), strict=True)
    lines: list[Sequence[str]] = [[escaped(column.head) for column in columns], rules, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Marked) -> str:
    text = escaped(str(cell.value))
    text = f"**{text}**" if cell.bold else f"<u>{text}</u>" if cell.underlined else text
    return text + escaped(cell.mark)
