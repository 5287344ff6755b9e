"""Tables on a terminal of any width: texts fold, numbers never do.

In a table of names and numbers, columns that do not fit beside the names go into another block below. A name that
would fill the table gets a label, which is explained above the table. Names can have several columns, such as dataset
and system; they have no labels.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, chop_cells
from rich.console import Console, JustifyMethod
from rich.table import Table as RichTable
from rich.text import Text

from r2med.foundation.pages.cells import MISSING, Column, Marked, ShownColumn
from r2med.foundation.pages.page import Table
from r2med.foundation.text.terminal_text import printable

NAME_LINES = 3
"""Lines of a table's first column that a name may take."""

NAME_WIDTH = 12
"""Columns of the terminal that names have at least, if they are that long."""

HEAD_WIDTH = 12
"""Columns of the terminal before a head folds."""


def plain(text: object, style: str = "") -> Text:
    """Return text as it is: no markup, no control characters."""
    return Text(printable(str(text)), style=style)


def has_names(table: Table) -> bool:
    """Return True for a table with one column of names, and numbers."""
    return _name_columns(table.columns) == 1


def _name_columns(columns: Sequence[Column | ShownColumn]) -> int:
    """Return the number of columns with names if all columns behind them have numbers, otherwise 0."""
    names = next((at for at, column in enumerate(columns) if column.is_numeric), 0)
    return names if all(column.is_numeric for column in columns[names:]) else 0


def name_labels(table: Table, width: int) -> dict[str, str]:
    """Return a label for each name that is too long for the table on a terminal of this width."""
    names, *columns = table.shown_columns
    texts = [printable(str(cell.value)) for cell in names.cells]
    widths = _widths(columns, width)
    blocks = _blocks(widths, _longest(texts), width)
    room = min((width - _needed(widths, block) for block in blocks), default=width)
    long = [text for text in texts if cell_len(text) > NAME_LINES * room]
    return {name: f"[{number}]" for number, name in enumerate(dict.fromkeys(long), 1)}


def print_table(table: Table, output: Console, labels: Mapping[str, str]) -> None:
    """Print a table; `labels` stand for long names."""
    if has_names(table):
        names, *columns = table.shown_columns
        for number, block in enumerate(_named_blocks(names, columns, labels, output.width)):
            if number:
                output.print()
            output.print(block)
        return
    columns = table.shown_columns
    for number, beside in enumerate(_text_blocks(columns, output.width)):
        if number:
            output.print()
        output.print(_plain_table(beside))


def _text_blocks(columns: Sequence[ShownColumn], width: int) -> Iterator[Sequence[ShownColumn]]:
    """Yield the columns that are beside each other: all of them, or blocks that begin with the names."""
    names = _name_columns(columns)
    wide = _widths(columns, sys.maxsize)
    kept = sum(
        1 + (each if column.whole else min(each, NAME_WIDTH))
        for each, column in zip(wide[:names], columns[:names], strict=True)
    )
    if not names or kept + sum(wide[names:]) + len(wide[names:]) <= width:
        yield columns
        return
    for block in _blocks(wide[names:], 0, width - kept):
        yield [*columns[:names], *columns[names + block.start : names + block.stop]]


def _plain_table(columns: Sequence[ShownColumn]) -> RichTable:
    made = _empty_table()
    for column in columns:
        justify: JustifyMethod = "right" if column.is_numeric else "left"
        made.add_column(plain(column.head), justify=justify, no_wrap=column.is_numeric or column.whole, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        made.add_row(*map(_text, row))
    return made


def _named_blocks(
    names: ShownColumn, columns: Sequence[ShownColumn], labels: Mapping[str, str], width: int
) -> Iterator[RichTable]:
    widths = _widths(columns, width)
    texts = [printable(str(cell.value)) for cell in names.cells]
    first = [labels.get(text, text) for text in texts]
    for block in _blocks(widths, _longest(first), width):
        made = _empty_table()
        made.add_column(plain(names.head), overflow="fold")
        for number in block:
            head = Text("\n").join(map(plain, _folded(printable(columns[number].head), widths[number])))
            made.add_column(head, justify="right", no_wrap=True)
        for row, (name, cell) in enumerate(zip(first, names.cells, strict=True)):
            made.add_row(plain(name, _style(cell)), *(_text(columns[number].cells[row]) for number in block))
        yield made


def _empty_table() -> RichTable:
    return RichTable(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)


def _text(cell: Marked) -> Text:
    text = plain(cell.value, "dim" if cell.value == MISSING else _style(cell))
    return text + plain(cell.mark) if cell.mark else text


def _style(cell: Marked) -> str:
    return "bold" if cell.bold else "underline" if cell.underlined else ""


def _widths(columns: Sequence[ShownColumn], width: int) -> list[int]:
    """Return how wide each column is: heads fold if there is not room for all of them."""
    heads = [cell_len(printable(column.head)) for column in columns]
    cells = [max((_text(cell).cell_len for cell in column.cells), default=0) for column in columns]
    whole = list(map(max, heads, cells))
    if sum(whole) + len(whole) + NAME_WIDTH <= width:
        return whole
    return [max(min(head, HEAD_WIDTH), wide) for head, wide in zip(heads, cells, strict=True)]


def _longest(names: Sequence[str]) -> int:
    return max(map(cell_len, names), default=0)


def _needed(widths: Sequence[int], block: range) -> int:
    return sum(1 + widths[column] for column in block)


def _blocks(widths: Sequence[int], longest: int, width: int) -> list[range]:
    """Return which columns are beside each other: all of them, if the names fold into what is left."""
    everything = range(len(widths))
    if _needed(widths, everything) + min(longest, NAME_WIDTH) <= width:
        return [everything]
    room = width - min(longest, max(NAME_WIDTH, width // 4))
    blocks: list[range] = []
    start = 0
    for end in range(1, len(widths) + 1):
        if end == len(widths) or _needed(widths, range(start, end + 1)) > room:
            blocks.append(range(start, end))
            start = end
    return blocks


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
