"""Columns and cells of a table: the kinds of values, and the text form of each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Kind = Literal["text", "integer", "number", "score", "difference", "share", "p", "seconds", "dollars"]
"""Kind of the values of a column. A score is in points (the measure × 100), a share is between 0 and 1."""

Tone = Literal["", "lead", "strong", "quiet", "good", "warning", "error"]
"""Emphasis of a text; the finding of a section is its lead. A terminal shows it in colours."""


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval: the range to expect with other queries of the same kind."""

    value: float
    low: float | None = None
    high: float | None = None
    """Both are None if there are too few observations for an interval."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Low and high; the number itself twice if there is no interval."""
        return (self.value, self.value) if self.low is None or self.high is None else (self.low, self.high)

    def interval(self, form: str) -> str:
        """Return the interval as text, with bounds in a format such as `.2f` or `.0%`; a dash if there is none."""
        return "–" if self.low is None else " to ".join(f"{bound:{form}}" for bound in self.bounds)


Value = str | int | float | Estimate | None
"""Value of a cell. A text in a column of numbers says why a number is missing, or is a bound such as ≥ 1.20."""

MISSING = "–"
INTERVAL_HEAD = "95 %"


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    head: str
    kind: Kind = "text"
    digits: int = 2
    """Decimals of a number, a score or a share."""
    no_wrap: bool = False
    """True for a text that a narrow terminal must not fold."""
    missing: str = MISSING
    """Text for a cell that is None."""

    @property
    def is_numeric(self) -> bool:
        """True if cells are aligned to the right."""
        return self.kind != "text"


@dataclass(frozen=True)
class Marked:
    """A cell with emphasis: papers set the best score in bold, underline the second, and add marks such as †."""

    value: Value
    bold: bool = False
    underlined: bool = False
    mark: str = ""


@dataclass(frozen=True)
class ShownColumn:
    """A column as text: an estimate takes two, its number and its interval."""

    head: str
    is_numeric: bool
    no_wrap: bool
    cells: Sequence[Marked]
    """The values of these cells are texts."""

    @property
    def texts(self) -> list[str]:
        """The cells with their marks."""
        return [f"{cell.value}{cell.mark}" for cell in self.cells]


def value_of(cell: Value | Marked) -> Value:
    """Return the value of a cell without its emphasis; None instead of NaN."""
    value = cell.value if isinstance(cell, Marked) else cell
    number = value.value if isinstance(value, Estimate) else value
    return None if isinstance(number, float) and math.isnan(number) else value


def shown(value: Value, column: Column) -> str:
    """Return the text of a value. An estimate is shown without its interval."""
    number = value.value if isinstance(value, Estimate) else value
    if number is None:
        return column.missing
    if isinstance(number, str):
        return number
    return _FORMS[column.kind](number, column.digits)


def shown_interval(value: Value, column: Column) -> str:
    """Return the text of the interval of an estimate; empty for a text."""
    if not isinstance(value, Estimate) or value.low is None:
        return "" if isinstance(value, str) else MISSING
    return " to ".join(_FORMS[column.kind](bound, column.digits) for bound in value.bounds)


def signed(points: float | None, digits: int = 2) -> str:
    """Return points with their sign, zero without one, and a dash for None."""
    if points is None:
        return MISSING
    text = f"{points:+.{digits}f}"
    return text.replace("-", "−") if float(text) else f"{0:.{digits}f}"


def shown_p(p: float) -> str:
    """Return a p-value; a very small one as a bound."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def shown_seconds(seconds: float) -> str:
    """Return seconds with three significant digits."""
    return f"{seconds:.3g}" if seconds < 1000 else f"{seconds:,.0f}"


def shown_dollars(dollars: float) -> str:
    """Return dollars with cents. Sums below ten cents have two significant digits: 0.00012, not 0.00."""
    if not 0 < abs(dollars) < 0.1:
        return f"{dollars:,.2f}"
    whole, _, digits = f"{dollars:.{1 - math.floor(math.log10(abs(dollars)))}f}".partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(2, '0')}"


def _number(value: float, digits: int) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"


_FORMS: Mapping[Kind, Callable[[float, int], str]] = {
    "text": _number,
    "integer": lambda value, _: f"{value:,.0f}",
    "number": _number,
    "score": lambda value, digits: f"{value:.{digits}f}",
    "difference": signed,
    "share": lambda value, digits: f"{value:.{digits}%}",
    "p": lambda value, _: shown_p(value),
    "seconds": lambda value, _: shown_seconds(value),
    "dollars": lambda value, _: shown_dollars(value),
}


def aligned_text(columns: Sequence[ShownColumn]) -> str:
    """Return columns as lines of text. Texts are aligned left, numbers right."""
    padded = map(_padded, columns)
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*padded, strict=True))


def _padded(column: ShownColumn) -> list[str]:
    texts = [column.head, *column.texts]
    width = max(map(len, texts))
    return [text.rjust(width) if column.is_numeric else text.ljust(width) for text in texts]


def notebook_table(columns: Sequence[ShownColumn], title: str) -> str:
    """Return columns as a table of HTML."""
    caption = element("caption", title) if title else ""
    head = "".join(element("th", column.head) for column in columns)
    rows = zip(*(column.texts for column in columns), strict=True)
    lines = "".join(f"<tr>{''.join(element('td', text) for text in row)}</tr>" for row in rows)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def element(tag: str, text: str) -> str:
    """Return an element of HTML around a text."""
    return f"<{tag}>{escape(text)}</{tag}>"
