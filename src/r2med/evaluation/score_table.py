"""A table as a value: aligned in a print, HTML in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.text.html_table import html_table


@dataclass(frozen=True, repr=False)
class ScoreTable:
    """Names down, figures across, as they are shown."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __repr__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        shown = [
            "  ".join(
                [line[0].ljust(widths[0]), *(cell.rjust(wide) for cell, wide in zip(line[1:], widths[1:], strict=True))]
            )
            for line in lines
        ]
        return "\n".join([self.title, *shown])

    def _repr_html_(self) -> str:
        return html_table(self.heads, self.rows, self.title)
