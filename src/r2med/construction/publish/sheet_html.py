"""A datasheet as a static page in the board's look, in which nothing of the data is markup."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib import resources

from r2med.construction.publish.sheet_markdown import shown
from r2med.construction.publish.sheet_parts import Bars, Cell, Part, Points, Section, Sheet, Spans, Table, Verbatim
from r2med.web.static_page import static_page

_HASH = re.compile("[0-9a-f]{16,64}")

TOGETHER = {Bars: "columns", Verbatim: "texts"}
LONG = 10
"""Letters of a figure from which on it is set smaller."""


def page(sheet: Sheet) -> str:
    """Return the page."""
    own = (resources.files("r2med.construction") / "datasheet.css").read_text("utf-8")
    lede = f'<div class="lede"><h1>{escape(sheet.title)}</h1><p>{escape(sheet.summary)}</p></div>'
    figures = f'<dl class="figures">{"".join(_figure(*each) for each in sheet.figures)}</dl>'
    main = f"{lede}\n{figures}\n{''.join(map(_section, sheet.sections))}"
    return static_page(f"{sheet.title}: datasheet", "datasheet", main, sheet.foot, own)


def _figure(label: str, figure: str, note: str) -> str:
    size = _class("long" if len(figure) > LONG else "")
    told = f"<dd{size}>{escape(figure)}<small>{escape(note)}</small></dd>"
    return f'<div class="figure"><dt>{escape(label)}</dt>{told}</div>'


def _section(section: Section) -> str:
    """Return a section; charts that follow each other stand side by side where there is room, texts close together."""
    parts = []
    for kind, group in itertools.groupby(section.parts, key=type):
        inner = "".join(map(_part, group))
        parts.append(f'<div class="{TOGETHER[kind]}">{inner}</div>' if kind in TOGETHER else inner)
    return f'<section class="section"><h2>{escape(section.title)}</h2>{"".join(parts)}</section>\n'


def _part(part: Part) -> str:
    match part:
        case str():
            return f"<p>{escape(part)}</p>"
        case Points():
            return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in part.texts)}</ul>"
        case Verbatim():
            text = f'<div class="command"><pre>{escape(part.text)}</pre></div>'
            return f"<details><summary>{escape(part.title)}</summary>{text}</details>"
        case Table():
            numbers = [not isinstance(cell, str) for cell in part.rows[0]] if part.rows else [False] * len(part.heads)
            return _wrapped(part.caption, _head(part.heads, numbers), map(_row, part.rows))
        case Bars():
            return _wrapped(part.caption, "", _bars(part), "bars")
        case Spans():
            return _wrapped(part.caption, "", _spans(part), "spans")


def _wrapped(caption: str, head: str, lines: Iterable[str], kind: str = "") -> str:
    table = f"<table{_class(kind)}>{head}<tbody>{''.join(lines)}</tbody></table>"
    return f'<div class="block"><h3>{escape(caption)}</h3><div class="table-wrap">{table}</div></div>'


def _head(heads: Sequence[str], numbers: Sequence[bool]) -> str:
    if not any(heads):
        return ""
    cells = (
        f'<th scope="col"{_class("num" if number else "")}>{escape(head)}</th>'
        for head, number in zip(heads, numbers, strict=True)
    )
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _row(row: Sequence[Cell]) -> str:
    return f"<tr>{''.join(f'<td{_class(_kind(cell))}>{escape(shown(cell))}</td>' for cell in row)}</tr>"


def _kind(cell: Cell) -> str:
    return "num" if not isinstance(cell, str) else "hash" if _HASH.fullmatch(cell) else ""


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _bars(part: Bars) -> Iterator[str]:
    most = max((count for _, count in part.rows), default=0) or 1
    for label, count in part.rows:
        bar = f'<rect class="fill" x="0" y="0" width="{100 * count / most:.2f}" height="10"/>'
        yield _line(escape(label), bar, f"{count:,}")


def _spans(part: Spans) -> Iterator[str]:
    """Yield intervals on a line from 0 to 1; a dot that keeps its shape is a line without length."""
    for label, value, low, high, note in part.rows:
        lines = (("rail", 0.0, 1.0), ("range", low, high), ("dot", value, value))
        drawn = "".join(
            f'<line class="{kind}" x1="{2 + 96 * start:.2f}" x2="{2 + 96 * stop:.2f}" y1="5" y2="5"/>'
            for kind, start, stop in lines
        )
        figure = f"{value:.1%}<small>{low:.1%} to {high:.1%}</small>"
        yield _line(f"{escape(label)}<small>{escape(note)}</small>", drawn, figure)


def _line(head: str, drawn: str, figure: str) -> str:
    svg = f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
    return f'<tr><th scope="row">{head}</th><td class="bar">{svg}</td><td class="num">{figure}</td></tr>'
