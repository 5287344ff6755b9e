"""Pages as values. A section is five kinds of blocks for every format.

Blocks are headings, paragraphs, lists, verbatim texts and tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from r2med.foundation.pages.cells import (
    INTERVAL_HEAD,
    Column,
    Estimate,
    Marked,
    ShownColumn,
    Tone,
    Value,
    aligned_text,
    element,
    notebook_table,
    shown,
    shown_interval,
    value_of,
)

if TYPE_CHECKING:
    from r2med.foundation.text.highlight import Words

Row = Sequence[Value | Marked]


@dataclass(frozen=True)
class Bars:
    """Counts by label, drawn as bars."""

    rows: Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Dots:
    """A row of dots with their intervals for each label: one dot for each series, on a common axis."""

    rows: Sequence[tuple[str, Mapping[str, Estimate | None]]]
    axis: str


@dataclass(frozen=True, repr=False)
class Table:
    """Rows under typed columns. It prints as aligned text, and as HTML in a notebook."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    note: str = ""
    """A note below the table."""
    name: str = ""
    """Name of the CSV file of the table; empty if it has none."""
    chart: Dots | Bars | None = None
    """A chart of its numbers. Formats with charts show dots above the table, and bars in its place."""

    @classmethod
    def of(
        cls,
        heads: Sequence[str],
        rows: Sequence[Row],
        title: str = "",
        note: str = "",
        name: str = "",
        digits: int = 2,
        chart: Dots | None = None,
    ) -> Table:
        """Return a table. Columns without texts are columns of numbers."""
        cells = [[value_of(row[number]) for row in rows] for number in range(len(heads))]
        numeric = [bool(column) and not any(isinstance(value, str) for value in column) for column in cells]
        columns = [
            Column(head, "number" if number else "text", digits) for head, number in zip(heads, numeric, strict=True)
        ]
        return cls(columns, rows, title, note, name, chart)

    @classmethod
    def of_counts(cls, title: str, rows: Sequence[tuple[str, int]]) -> Table:
        """Return a table of counts by label."""
        return cls((Column(""), Column("count", "integer")), rows, title, chart=Bars(rows))

    @property
    def heads(self) -> tuple[str, ...]:
        """The head of each column."""
        return tuple(column.head for column in self.columns)

    @property
    def shown_columns(self) -> list[ShownColumn]:
        """The columns as texts. A column of estimates is two: the number and its interval."""
        cells = [[row[number] for row in self.rows] for number in range(len(self.columns))]
        return [each for column, of in zip(self.columns, cells, strict=True) for each in _shown(column, of)]

    @property
    def shown_rows(self) -> list[tuple[Marked, ...]]:
        """The rows as texts, with a cell for each of the shown columns."""
        return list(zip(*(column.cells for column in self.shown_columns), strict=True))

    def __repr__(self) -> str:
        texts = (self.title, aligned_text(self.shown_columns), self.note)
        return "\n".join(filter(None, texts))

    def _repr_html_(self) -> str:
        return notebook_table(self.shown_columns, self.title)


def _shown(column: Column, cells: Sequence[Value | Marked]) -> Iterator[ShownColumn]:
    """Yield a column as texts, and the intervals of its estimates if one of them has any."""
    values = [value_of(cell) for cell in cells]
    marks = [cell if isinstance(cell, Marked) else Marked(None) for cell in cells]
    texts = [replace(mark, value=shown(value, column)) for mark, value in zip(marks, values, strict=True)]
    yield ShownColumn(column.head, column.is_numeric, column.no_wrap, texts)
    if any(isinstance(value, Estimate) and value.low is not None for value in values):
        ranges = [Marked(shown_interval(value, column)) for value in values]
        yield ShownColumn(INTERVAL_HEAD, column.is_numeric, column.no_wrap, ranges)


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    text: str
    aside: str = ""
    """Text beside the title."""
    aside_tone: Tone = "quiet"


@dataclass(frozen=True)
class Paragraph:
    """A paragraph in one tone, with a label before it and with marked words if it shows what matches a query."""

    text: str
    tone: Tone = ""
    no_wrap: bool = False
    """True for a line that people copy, such as a command or a path. A terminal must not break it."""
    label: str = ""
    marks: Sequence[tuple[int, int, str]] = ()
    """Start, stop and source (query, generated, both) of each marked word."""

    @classmethod
    def excerpt(cls, label: str, text: str, words: Words, width: int) -> Paragraph:
        """Return the part of a text that matches some words best, on one line of at most `width` characters."""
        from r2med.foundation.text.highlight import best_window

        line = " ".join(text.split())
        window = best_window(line, words, width)
        before, after = "… " if window.start else "", " …" if window.stop < len(line) else ""
        shift = len(before) - window.start
        telling = [match for match in window.matches if not words.is_common(match.term)]
        marks = [(match.start + shift, match.stop + shift, match.kind) for match in telling]
        return cls(f"{before}{line[window.start : window.stop]}{after}", label=label, marks=marks)

    @property
    def pieces(self) -> Iterator[tuple[str, str]]:
        """The text in pieces, each with its source. The source is empty where nothing is marked."""
        end = 0
        for start, stop, source in self.marks:
            yield self.text[end:start], ""
            yield self.text[start:stop], source
            end = stop
        yield self.text[end:], ""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    texts: Sequence[str]
    are_notes: bool = False
    """True for the notes of a section."""


@dataclass(frozen=True)
class Verbatim:
    """A text as it was used, such as a prompt."""

    title: str
    text: str


Part = Paragraph | Bullets | Verbatim | Table
Block = Heading | Part
Content = str | Part
"""What commands put into a section. A text is a paragraph."""


@dataclass(frozen=True)
class Section:
    """A part of a page under a title."""

    title: str
    parts: Sequence[Content] = ()
    lead: str = ""
    """The finding in one or two sentences."""
    notes: Sequence[str] = ()
    """Notes about what was left out or failed, and how to read the numbers."""
    name: str = ""
    """Name of the anchor for links."""
    aside: str = ""
    """Text beside the title."""
    aside_tone: Tone = "quiet"

    @property
    def body(self) -> list[Part]:
        """Its parts, in which a text is a paragraph."""
        return [Paragraph(part) if isinstance(part, str) else part for part in self.parts]

    @property
    def blocks(self) -> list[Block]:
        """Everything that it shows, in order."""
        head = [Heading(self.title, self.aside, self.aside_tone)] if self.title else []
        lead = [Paragraph(self.lead, "lead")] if self.lead else []
        notes = [Bullets(self.notes, are_notes=True)] if self.notes else []
        return [*head, *lead, *self.body, *notes]

    @property
    def tables(self) -> list[Table]:
        """Its tables."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def sentences(self) -> list[str]:
        """Its lead, paragraphs and notes."""
        paragraphs = [part.text for part in self.body if isinstance(part, Paragraph)]
        return [text for text in (self.lead, *paragraphs, *self.notes) if text]

    def _repr_html_(self) -> str:
        title = element("h4", self.title) if self.title else ""
        tables = "".join(table._repr_html_() for table in self.tables)
        return f"{title}{tables}{''.join(element('p', text) for text in self.sentences)}"


@dataclass(frozen=True)
class Page:
    """Everything that a command shows, for any format."""

    title: str
    sections: Sequence[Section]
    summary: str = ""
    facts: Sequence[tuple[str, str, str]] = ()
    """Facts at the top: label, fact, note."""
    foot: str = ""
    kind: str = ""
    """One word beside the name of the toolkit on an HTML page, such as datasheet."""
    about: str = ""
    """The object of the page, above the title."""
    has_files: bool = False
    """True if each table is also a CSV file beside the page, under the table's name."""

    @property
    def tables(self) -> list[Table]:
        """The tables of all sections."""
        return [table for section in self.sections for table in section.tables]

    def _repr_html_(self) -> str:
        return f"{element('h3', self.title)}{''.join(section._repr_html_() for section in self.sections)}"


def table_page(title: str, *tables: Table, notes: Sequence[Paragraph] = ()) -> Page:
    """Return a page with only tables and the notes below them."""
    return Page(title, [Section("", [*tables, *notes])])
