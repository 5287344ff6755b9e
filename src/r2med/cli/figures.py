"""Tables of figures: names down, figures across. Names fold, figures never do.

Columns that do not fit beside the names go into another block below, and a name that would fill the table gets a
label, which is told above it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.text import Text

from r2med.cli.console import empty_table, plain

if TYPE_CHECKING:
    from rich.console import Console

LINES = 3
"""Lines of a table's first column that a name may take."""

ROOM = 12
"""Columns that names have at least, if they are that long."""

HEAD = 12
"""Columns of a head before it folds."""


@dataclass(frozen=True)
class Figures:
    """The head of each column, and a row of figures for each name."""

    corner: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Text]]

    def print(self, output: Console, names: Sequence[str]) -> None:
        """Print the table, in as many blocks as it needs."""
        widths = self._widths(output.width)
        for number, block in enumerate(_blocks(widths, _longest(names), output.width)):
            if number:
                output.print()
            made = empty_table()
            made.add_column(plain(self.corner), overflow="fold")
            for column in block:
                head = Text("\n").join(map(plain, _folded(self.heads[column], widths[column])))
                made.add_column(head, justify="right", no_wrap=True)
            for name, row in zip(names, self.rows, strict=True):
                made.add_row(plain(name), *(row[column] for column in block))
            output.print(made)

    def room(self, names: Sequence[str], width: int) -> int:
        """Return how many columns names have on an output of this width."""
        widths = self._widths(width)
        blocks = _blocks(widths, _longest(names), width)
        return min((width - _needed(widths, block) for block in blocks), default=width)

    def _widths(self, width: int) -> list[int]:
        """Return how wide each column is: heads fold if there is not room for all of them."""
        figures = [max(map(cell_len, map(str, column)), default=0) for column in zip(*self.rows, strict=True)]
        whole = [max(pair) for pair in zip(map(cell_len, self.heads), figures, strict=True)]
        if sum(whole) + len(whole) + ROOM <= width:
            return whole
        return [max(min(cell_len(head), HEAD), wide) for head, wide in zip(self.heads, figures, strict=True)]


def labelled(names: Sequence[str], room: int) -> tuple[list[str], list[str]]:
    """Return the names as they stand in a table, and a line for each that a label stands for."""
    long = [name for name in names if cell_len(name) > LINES * room]
    labels = {name: f"[{number}]" for number, name in enumerate(dict.fromkeys(long), 1)}
    return [labels.get(name, name) for name in names], [f"{label} {name}" for name, label in labels.items()]


def _longest(names: Sequence[str]) -> int:
    return max(map(cell_len, names), default=0)


def _needed(widths: Sequence[int], block: range) -> int:
    return sum(1 + widths[column] for column in block)


def _blocks(widths: Sequence[int], longest: int, width: int) -> list[range]:
    """Return which columns stand beside each other: all of them, if the names fold into what is left."""
    everything = range(len(widths))
    if _needed(widths, everything) + min(longest, ROOM) <= width:
        return [everything]
    room = width - min(longest, max(ROOM, width // 4))
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
