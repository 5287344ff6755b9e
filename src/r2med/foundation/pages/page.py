"""Pages, their sections, and what sections hold: sentences, tables, charts, marked texts and verbatim texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from r2med.foundation.pages.cells import (
    INTERVAL_HEAD,
    Column,
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
from r2med.foundation.pages.estimate import Estimate

Row = Sequence[Value | Marked]


@dataclass(frozen=True)
class Bars:
    """Counts by label, drawn as bars."""

    title: str
    rows: Sequence[tuple[str, int]]

    @property
    def table(self) -> Table:
        """The same counts as a table, for formats without charts."""
        return Table((Column(""), Column("count", "integer")), self.rows, self.title)


@dataclass(frozen=True)
class Dots:
    """A row of dots with their intervals for each label: one dot for each series, on a common axis."""

    rows: Sequence[tuple[str, Mapping[str, Estimate | None]]]
    axis: str

    @property
    def table(self) -> Table:
        """The same numbers as a table, for formats without charts."""
        rows = [(label, name, value) for label, values in self.rows for name, value in values.items()]
        return Table((Column(""), Column("series"), Column(self.axis, "number")), rows)


@dataclass(frozen=True)
class Curves:
    """A line through (x, estimate) for each series; `log` spreads x by its logarithm."""

    series: Mapping[str, Sequence[tuple[float, Estimate]]]
    across: str
    up: str
    log: bool = False

    @property
    def table(self) -> Table:
        """The same numbers as a table, for formats without charts."""
        rows = [(name, x, value) for name, points in self.series.items() for x, value in points]
        return Table((Column("series"), Column(self.across, "number"), Column(self.up, "number")), rows)


Chart = Bars | Dots | Curves


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
    chart: Chart | None = None
    """A chart of its numbers, for formats with charts."""

    @classmethod
    def of(
        cls,
        heads: Sequence[str],
        rows: Sequence[Row],
        title: str = "",
        note: str = "",
        name: str = "",
        digits: int = 2,
        chart: Chart | None = None,
    ) -> Table:
        """Return a table. Columns without texts are columns of numbers."""
        cells = [[value_of(row[number]) for row in rows] for number in range(len(heads))]
        numeric = [bool(column) and not any(isinstance(value, str) for value in column) for column in cells]
        columns = [
            Column(head, "number" if number else "text", digits) for head, number in zip(heads, numeric, strict=True)
        ]
        return cls(columns, rows, title, note, name, chart)

    @property
    def heads(self) -> tuple[str, ...]:
        """The head of each column."""
        return tuple(column.head for column in self.columns)

    @property
    def shown_columns(self) -> list[ShownColumn]:
        """The columns as texts. A column of estimates is two: the number and its interval."""
        cells = [[row[number] for row in self.rows] for number in range(len(self.columns))]
        return [each for column, of in zip(self.columns, cells, strict=True) for each in _shown(column, of)]

    def __repr__(self) -> str:
        texts = (self.title, aligned_text(self.shown_columns), self.note)
        return "\n".join(filter(None, texts))

    def _repr_html_(self) -> str:
        return notebook_table(self.shown_columns, self.title)


def has_intervals(cells: Sequence[Value | Marked]) -> bool:
    """Return True if a column holds an estimate with an interval."""
    values = map(value_of, cells)
    return any(isinstance(value, Estimate) and value.low is not None for value in values)


def _shown(column: Column, cells: Sequence[Value | Marked]) -> Iterator[ShownColumn]:
    texts = [_emphasised(cell, shown(value_of(cell), column)) for cell in cells]
    yield ShownColumn(column.head, column.is_numeric, column.whole, texts)
    if has_intervals(cells):
        ranges = [Marked(shown_interval(value_of(cell), column)) for cell in cells]
        yield ShownColumn(INTERVAL_HEAD, column.is_numeric, column.whole, ranges)


def _emphasised(cell: Value | Marked, text: str) -> Marked:
    return replace(cell, value=text) if isinstance(cell, Marked) else Marked(text)


@dataclass(frozen=True)
class Note:
    """A sentence that is set off from the others by its tone."""

    text: str
    tone: Tone = ""
    whole: bool = False
    """True for a line that people copy, such as a command or a path. A terminal must not break it."""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    texts: Sequence[str]


@dataclass(frozen=True)
class Verbatim:
    """A text as it was used, such as a prompt."""

    title: str
    text: str


@dataclass(frozen=True)
class MarkedText:
    """A text under a label, in pieces: a piece that matches a word has the word's source (query, generated, both)."""

    label: str
    pieces: Sequence[tuple[str, str]]
    """Text and source of each piece. The source is empty if the piece matches no word."""


Content = str | Note | Bullets | Verbatim | MarkedText | Table | Chart


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
    def tables(self) -> list[Table]:
        """Its tables, with those of charts outside a table."""
        charts = (Bars, Dots, Curves)
        known = [part.table if isinstance(part, charts) else part for part in self.parts]
        return [part for part in known if isinstance(part, Table)]

    @property
    def sentences(self) -> list[str]:
        """Its sentences, without title and tables."""
        parts = [part.text if isinstance(part, Note) else part for part in self.parts]
        return [text for text in (self.lead, *parts, *self.notes) if text and isinstance(text, str)]

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


def table_page(title: str, *tables: Table, notes: Sequence[Note] = ()) -> Page:
    """Return a page with only tables and the notes below them."""
    return Page(title, [Section("", [*tables, *notes])])
