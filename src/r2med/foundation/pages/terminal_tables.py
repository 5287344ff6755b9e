"""Tables on a terminal: texts fold, numbers never do, and a table that is still too wide goes on behind the edge.

In a table of names and numbers, a name that would fill the table gets a label, which is explained above the table.
Names can have several columns, such as dataset and system; they have no labels.
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

from r2med.foundation.pages.cells import MISSING, Marked, ShownColumn
from r2med.foundation.pages.page import Table
from r2med.foundation.text.terminal_text import printable

NAME_LINES = 3
"""Lines of a table's first column that a name may take."""

NAME_WIDTH = 12
"""Columns of the terminal that texts have at least, if they are that long."""

HEAD_WIDTHS = (sys.maxsize, 12, 9)
"""Columns of the terminal before a head of numbers folds: the first with which the table fits."""


def plain(text: object, style: str = "") -> Text:
    """Return text as it is: no markup, no control characters."""
    return Text(printable(str(text)), style=style)


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
            made.add_column(plain(column.head), no_wrap=column.whole, overflow="fold")
    named = labels if has_names(table) else {}
    for cells in table.shown_rows:
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
    return max(head, cell) if column.whole else min(max(head, cell), NAME_WIDTH)


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
