"""What a datasheet is made of, whatever it is written in: sections of paragraphs, tables, bars, intervals and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Cell = str | int | float


@dataclass(frozen=True)
class Table:
    """Rows under heads; numbers stand at the right."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Bars:
    """Counts by label, drawn as bars."""

    caption: str
    rows: Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Spans:
    """Values between 0 and 1 with their intervals, drawn on one scale; and a note on each."""

    caption: str
    rows: Sequence[tuple[str, float, float, float, str]]


@dataclass(frozen=True)
class Verbatim:
    """A text as it was used, such as a prompt."""

    title: str
    text: str


@dataclass(frozen=True)
class Points:
    """Sentences that stand each for itself."""

    texts: Sequence[str]


Part = str | Points | Table | Bars | Spans | Verbatim


@dataclass(frozen=True)
class Section:
    """A part of the sheet under a title."""

    title: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Sheet:
    """A datasheet."""

    title: str
    summary: str
    figures: Sequence[tuple[str, str, str]]
    """What stands on top: label, figure, note."""
    sections: Sequence[Section]
    foot: str
