"""Pages as GitHub's Markdown. All data is escaped."""

from __future__ import annotations

from collections.abc import Iterator

from r2med.foundation.pages.cells import Column, Marked
from r2med.foundation.pages.page import Block, Bullets, Heading, Page, Paragraph, Table, Verbatim

_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~!$"})


def escaped(text: str) -> str:
    """Return a text on one line in which nothing is markup: names have stars, pipes and angles of their own."""
    return " ".join(text.split()).translate(_SIGNS)


def page_markdown(page: Page) -> str:
    """Return a page as Markdown."""
    facts = [Table((Column(""), Column(""), Column("")), page.facts)] if page.facts else []
    blocks = [*facts, *(block for section in page.sections for block in section.blocks)]
    texts = [
        f"# {escaped(page.title)}" if page.title else "",
        escaped(page.about),
        escaped(page.summary),
        *(text for block in blocks for text in _texts(block)),
        escaped(page.foot),
    ]
    return "\n\n".join(filter(None, texts)) + "\n"


def table_markdown(table: Table) -> str:
    """Return a table, and its title and note below it: as much as a paper's table has."""
    return "\n\n".join(filter(None, (_rows(table), escaped(table.title), escaped(table.note)))) + "\n"


def _texts(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"## {escaped(f'{block.text} {block.aside}')}"
        case Paragraph():
            text = escaped(block.text)
            label = f"**{escaped(block.label)}** " if block.label else ""
            yield label + (f"**{text}**" if block.tone == "strong" and text else text)
        case Bullets():
            yield "\n".join(f"- {escaped(text)}" for text in block.texts)
        case Verbatim():
            yield f"**{escaped(block.title)}**"
            yield "\n".join(f"    {line}" for line in block.text.splitlines())
        case Table():
            yield f"**{escaped(block.title)}**" if block.title else ""
            yield _rows(block)
            yield escaped(block.note)


def _rows(table: Table) -> str:
    columns = table.shown_columns
    heads = [escaped(column.head) for column in columns]
    rules = ["--:" if column.is_numeric else ":--" for column in columns]
    lines = [heads, rules, *(map(_cell, row) for row in table.shown_rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: Marked) -> str:
    text = escaped(str(cell.value))
    text = f"**{text}**" if cell.bold else f"<u>{text}</u>" if cell.underlined else text
    return text + escaped(cell.mark)
