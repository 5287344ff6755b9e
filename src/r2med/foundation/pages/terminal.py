"""Pages on a terminal, with an empty line between sections and sentences in the colour of their tone.

In tables, texts fold and numbers never do; a table that is still too wide goes on behind the edge. In a table of names
and numbers, a name that would fill the table gets a label, which is explained above the table. Names can have several
columns, such as dataset and system; they have no labels.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from r2med.foundation.pages.cells import MISSING, Marked, ShownColumn, Tone
from r2med.foundation.pages.page import Block, Bullets, Heading, Page, Paragraph, Section, Table, Verbatim
from r2med.foundation.text.terminal_text import printable

STYLES: Mapping[Tone, str] = {
    "": "",
    "lead": "",
    "strong": "bold",
    "quiet": "dim",
    "good": "bold green",
    "warning": "yellow",
    "error": "red",
}
LEGEND = "Words of the question are yellow, words that the LLM wrote cyan, words of both green."
MARKS = {"": "", "query": "bold yellow", "generated": "bold cyan", "both": "bold green"}

NAME_LINES = 3
"""Lines of a table's first column that a name may take."""

NAME_WIDTH = 12
"""Columns of the terminal that texts have at least, if they are that long."""

HEAD_WIDTHS = (sys.maxsize, 12, 9)
"""Columns of the terminal before a head of numbers folds: the first with which the table fits."""


def plain(text: object, style: str = "") -> Text:
    """Return text as it is: no markup, no control characters."""
    return Text(printable(str(text)), style=style)


def print_page(page: Page, output: Console) -> None:
    """Print the facts and sections of a page. Its title is left out, because the command says it."""
    for label, fact, note in page.facts:
        output.print(plain(f"{label}: ") + plain(fact, "bold"), plain(note, "dim"))
    if page.facts:
        output.print()
    for number, section in enumerate(page.sections):
        if number:
            output.print()
        _print_section(section, output)
    paragraphs = [part for section in page.sections for part in section.parts if isinstance(part, Paragraph)]
    sources = {source for paragraph in paragraphs for _, _, source in paragraph.marks}
    if output.is_terminal and not sources.isdisjoint(("generated", "both")):
        output.print(plain(LEGEND, "dim"))


def _print_section(section: Section, output: Console) -> None:
    blocks = section.blocks
    with_names = next((block for block in blocks if isinstance(block, Table) and has_names(block)), None)
    labels = name_labels(with_names, output.width) if with_names else {}
    before: Block | None = None
    for block in blocks:
        if isinstance(before, Table) and isinstance(block, Table):
            output.print()
        if block is with_names:
            for name, label in labels.items():
                output.print(plain(f"{label} {name}"))
        _print_block(block, output, labels)
        before = block


def _print_block(block: Block, output: Console, labels: Mapping[str, str]) -> None:
    match block:
        case Heading():
            aside = [plain(block.aside, STYLES[block.aside_tone])] if block.aside else []
            output.print(plain(block.text, "bold"), *aside)
        case Paragraph():
            label = plain(f"{block.label} " if block.label else "", "bold")
            pieces = [plain(text, MARKS[source] or STYLES[block.tone]) for text, source in block.pieces]
            output.print(plain("").join([label, *pieces]), soft_wrap=block.no_wrap)
        case Bullets():
            for text in block.texts:
                output.print(plain(f"Note: {text}", "yellow") if block.are_notes else plain(f"- {text}"))
        case Verbatim():
            output.print(plain(block.title, "bold"))
            for line in block.text.split("\n"):
                output.print(plain(line), soft_wrap=True)
        case Table():
            if block.title:
                output.print(plain(block.title))
            print_table(block, output, labels)
            if block.note:
                output.print(plain(block.note, "dim"))


def has_names(table: Table) -> bool:
    """Return True for a table with one column of names, and numbers."""
    numeric = [column.is_numeric for column in table.columns]
    return len(numeric) > 1 and not numeric[0] and all(numeric[1:])


def name_labels(table: Table, width: int) -> dict[str, str]:
    """Return a label for each name that is too long for the table on a terminal of this width."""
    names, *_ = columns = table.shown_columns
    room = max(NAME_WIDTH, width - sum(1 + each for each in _widths(columns, width)[1:]))
    texts = [printable(str(cell.value)) for cell in names.cells]
    long = [text for text in texts if cell_len(text) > NAME_LINES * room]
    return {name: f"[{number}]" for number, name in enumerate(dict.fromkeys(long), 1)}


def print_table(table: Table, output: Console, labels: Mapping[str, str]) -> None:
    """Print a table; `labels` stand for long names."""
    columns = table.shown_columns
    widths = _widths(columns, output.width)
    made = RichTable(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    for column, width in zip(columns, widths, strict=True):
        if column.is_numeric:
            head = Text("\n").join(map(plain, _folded(printable(column.head), width)))
            made.add_column(head, justify="right", no_wrap=True)
        else:
            made.add_column(plain(column.head), no_wrap=column.no_wrap, overflow="fold")
    named = labels if has_names(table) else {}
    for cells in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*(_text(cell, named) for cell in cells))
    made.width = _total(widths) if _total(widths) > output.width else None
    output.print(made, crop=False)


def _text(cell: Marked, labels: Mapping[str, str]) -> Text:
    text = printable(str(cell.value))
    style = "dim" if text == MISSING else "bold" if cell.bold else "underline" if cell.underlined else ""
    return plain(labels.get(text, text), style) + plain(cell.mark)


def _widths(columns: Sequence[ShownColumn], width: int) -> list[int]:
    """Return how wide each column is at least: heads of numbers fold if there is not room for all of them."""
    widths: list[int] = []
    for most in HEAD_WIDTHS:
        widths = [_least_width(column, most) for column in columns]
        if _total(widths) <= width:
            break
    return widths


def _least_width(column: ShownColumn, head_width: int) -> int:
    head = cell_len(printable(column.head))
    cell = max((cell_len(printable(text)) for text in column.texts), default=0)
    if column.is_numeric:
        return max(min(head, head_width), cell)
    return max(head, cell) if column.no_wrap else min(max(head, cell), NAME_WIDTH)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(widths) - 1


def _folded(head: str, width: int) -> list[str]:
    """Return the lines of a head: broken after signs that join words, elsewhere only if there is no other way."""
    lines = [""]
    for part in re.findall(r"[^-_/ ]*[-_/ ]?", head):
        for piece in chop_cells(part, width):
            if cell_len(lines[-1] + piece) <= width:
                lines[-1] += piece
            else:
                lines.append(piece)
    return lines
