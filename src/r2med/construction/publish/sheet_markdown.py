"""A datasheet as Markdown, in which nothing of the data is markup."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from r2med.construction.publish.sheet_parts import Bars, Cell, Part, Points, Sheet, Spans, Table, Verbatim

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def markdown(sheet: Sheet) -> str:
    """Return the datasheet."""
    lines = [f"# {escaped(sheet.title)}", escaped(sheet.summary)]
    lines.append(_table(("", "", ""), [(label, figure, note) for label, figure, note in sheet.figures]))
    for section in sheet.sections:
        lines.append(f"## {escaped(section.title)}")
        lines += [text for part in section.parts for text in _part(part)]
    return "\n\n".join([*filter(None, lines), escaped(sheet.foot)]) + "\n"


def escaped(text: str) -> str:
    """Return a text on one line whose signs mean nothing."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _part(part: Part) -> Iterator[str]:
    match part:
        case str():
            yield escaped(part)
        case Points():
            yield "\n".join(f"- {escaped(text)}" for text in part.texts)
        case Verbatim():
            yield f"**{escaped(part.title)}**"
            yield "\n".join(f"    {line}" for line in part.text.splitlines())
        case Table():
            yield f"**{escaped(part.caption)}**"
            yield _table(part.heads, part.rows)
        case Bars():
            yield f"**{escaped(part.caption)}**"
            yield _table(("", "count"), part.rows)
        case Spans():
            yield f"**{escaped(part.caption)}**"
            rows = [
                (name, f"{value:.3f}", f"{low:.3f} to {high:.3f}", note) for name, value, low, high, note in part.rows
            ]
            yield _table(("", "value", "95 % interval", ""), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    marks = ["---:" if rows and isinstance(rows[0][i], int | float) else "---" for i in range(len(heads))]
    lines = [heads, marks, *([escaped(shown(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def shown(cell: Cell) -> str:
    """Return a cell as a reader sees it."""
    if isinstance(cell, float):
        return f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell
