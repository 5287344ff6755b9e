"""Pages as HTML: one file in the style of the board, without scripts. All data is escaped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from r2med.foundation.core.version import __version__
from r2med.foundation.pages.cells import Column, Marked, Value, shown, shown_interval, value_of
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import (
    Bars,
    Bullets,
    Content,
    Curves,
    Dots,
    MarkedText,
    Note,
    Page,
    Section,
    Table,
    Verbatim,
)
from r2med.foundation.pages.svg import bar, curves, dots, glyph
from r2med.foundation.web.static_page import static_page

MAX_ROWS = 60
"""Largest number of rows of a table on a page with files. The CSV file has all rows."""
LONG_FACT = 10
"""Characters above which a fact is set in smaller type."""

GROUPS = {Bars: "columns", Verbatim: "texts"}
"""Parts that are grouped: bars side by side if there is room, texts close together."""

_HASH = re.compile("[0-9a-f]{16,64}")


def page_html(page: Page) -> str:
    """Return the page."""
    own = (resources.files("r2med.foundation.pages") / "page.css").read_text("utf-8")
    eyebrow = f'<p class="eyebrow">{escape(page.about)}</p>' if page.about else ""
    summary = f"<p>{escape(page.summary)}</p>" if page.summary else ""
    lede = f'<div class="lede">{eyebrow}<h1>{escape(page.title)}</h1>{summary}</div>\n'
    facts = f'<dl class="figures">{"".join(_fact(*each) for each in page.facts)}</dl>\n' if page.facts else ""
    main = lede + facts + "".join(_section(section, page.has_files) for section in page.sections)
    links = "".join(f'<a href="#{escape(each.name)}">{escape(each.title)}</a>' for each in page.sections if each.name)
    title = f"{page.title}: {page.kind}" if page.kind else page.title
    return static_page(title, page.kind, main, page.foot or f"r2med {__version__}", own, links)


def _fact(label: str, fact: str, note: str) -> str:
    size = _class("long" if len(fact) > LONG_FACT else "")
    return (
        f'<div class="figure"><dt>{escape(label)}</dt><dd{size}>{escape(fact)}<small>{escape(note)}</small></dd></div>'
    )


def _section(section: Section, has_files: bool) -> str:
    parts = []
    for kind, group in itertools.groupby(section.parts, key=type):
        inner = "".join(_part(part, has_files) for part in group)
        parts.append(f'<div class="{GROUPS[kind]}">{inner}</div>' if kind in GROUPS else inner)
    anchor = f' id="{escape(section.name)}"' if section.name else ""
    tone = section.aside_tone if section.aside_tone in ("good", "warning", "error") else ""
    aside = f" <small{_class(tone)}>{escape(section.aside)}</small>" if section.aside else ""
    title = f"<h2>{escape(section.title)}{aside}</h2>" if section.title else ""
    lead = f'<p class="lead">{escape(section.lead)}</p>' if section.lead else ""
    notes = f'<ul class="notes">{_items(section.notes)}</ul>' if section.notes else ""
    return f'<section class="section"{anchor}>{title}{lead}{"".join(parts)}{notes}</section>\n'


def _part(part: Content, has_files: bool) -> str:
    match part:
        case str():
            return f"<p>{escape(part)}</p>"
        case Note():
            text = f"<strong>{escape(part.text)}</strong>" if part.tone == "strong" else escape(part.text)
            return f"<p{_class('note' if part.tone == 'quiet' else '')}>{text}</p>" if part.text else ""
        case Bullets():
            return f"<ul>{_items(part.texts)}</ul>"
        case Verbatim():
            text = f'<div class="command"><pre>{escape(part.text)}</pre></div>'
            return f"<details><summary>{escape(part.title)}</summary>{text}</details>"
        case MarkedText():
            pieces = (f"<mark>{escape(text)}</mark>" if source else escape(text) for text, source in part.pieces)
            return f"<p><strong>{escape(part.label)}</strong> {''.join(pieces)}</p>"
        case Bars():
            return _block(part.title, _wide(part.title, f'<table class="bars"><tbody>{_bars(part)}</tbody></table>'))
        case Dots() | Curves():
            return f'<div class="plot panel">{_drawn(part)}</div>'
        case Table():
            return _table_block(part, has_files)


def _items(texts: Sequence[str]) -> str:
    return "".join(f"<li>{escape(text)}</li>" for text in texts)


def _bars(part: Bars) -> str:
    most = max((count for _, count in part.rows), default=0) or 1
    return "".join(
        f'<tr><th scope="row">{escape(label)}</th><td class="bar">{bar(count / most)}</td>'
        f'<td class="num">{count:,}</td></tr>'
        for label, count in part.rows
    )


def _drawn(chart: Dots | Curves) -> str:
    return dots(chart) if isinstance(chart, Dots) else curves(chart)


def _block(title: str, content: str) -> str:
    head = f"<h3>{escape(title)}</h3>" if title else ""
    return f'<div class="block">{head}{content}</div>'


def _table_block(table: Table, has_files: bool) -> str:
    drawn = _drawn(table.chart) if isinstance(table.chart, Dots | Curves) else ""
    chart = f'<div class="plot panel">{drawn}</div>' if drawn else ""
    file, shown_rows = "", table.rows
    if has_files and table.name:
        shown_rows = table.rows[:MAX_ROWS]
        more = f"{len(table.rows) - MAX_ROWS:,} more rows in " if len(table.rows) > MAX_ROWS else ""
        name = escape(f"{table.name}.csv")
        file = f'<p class="muted"><small>{more}<a href="{name}">{name}</a></small></p>'
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return _block(table.title, f"{chart}{_table(table, shown_rows)}{file}{note}")


def _table(table: Table, rows: Sequence[Sequence[Value | Marked]]) -> str:
    spans = [_span([value_of(row[number]) for row in table.rows]) for number in range(len(table.columns))]
    heads = (
        f'<th scope="col"{_class("num" if column.is_numeric else "")}>{escape(column.head)}</th>'
        for column in table.columns
    )
    head = f"<thead><tr>{''.join(heads)}</tr></thead>" if any(table.heads) else ""
    lines = (
        "".join(_cell(cell, column, span) for cell, column, span in zip(row, table.columns, spans, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return _wide(table.title or ", ".join(filter(None, table.heads)), f"<table>{head}<tbody>{body}</tbody></table>")


def _wide(name: str, table: str) -> str:
    """Return a table in a region that scrolls sideways, also by keyboard."""
    return f'<div class="table-wrap" role="region" tabindex="0" aria-label="{escape(name or "table")}">{table}</div>'


def _span(values: Sequence[Value]) -> tuple[float, float]:
    """Return the scale of a column's estimates, from the smallest bound to the largest."""
    bounds = [bound for value in values if isinstance(value, Estimate) for bound in value.bounds]
    return min(bounds, default=0.0), max(bounds, default=1.0)


def _cell(cell: Value | Marked, column: Column, span: tuple[float, float]) -> str:
    value = value_of(cell)
    kind = "num" if column.is_numeric else "hash" if isinstance(value, str) and _HASH.fullmatch(value) else ""
    return f"<td{_class(kind)}>{''.join(_inner(cell, value, column, span))}</td>"


def _inner(cell: Value | Marked, value: Value, column: Column, span: tuple[float, float]) -> Iterator[str]:
    text = escape(shown(value, column))
    text = text if column.is_numeric else f'<bdi class="name">{text}</bdi>'
    if isinstance(cell, Marked):
        text = f"<strong>{text}</strong>" if cell.bold else f"<u>{text}</u>" if cell.underlined else text
        text += escape(cell.mark)
    yield text
    if isinstance(value, Estimate) and value.low is not None:
        yield f'<span class="range">{escape(shown_interval(value, column))}</span>{glyph(value, *span)}'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
