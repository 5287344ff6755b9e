"""Pages as HTML: one file in the style of the board, without scripts. All data is escaped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from r2med.foundation.core.version import __version__
from r2med.foundation.pages.cells import Column, Estimate, Marked, Value, shown, shown_interval, value_of
from r2med.foundation.pages.page import Bars, Block, Bullets, Heading, Page, Paragraph, Section, Table, Verbatim
from r2med.foundation.pages.svg import bar, dots, glyph
from r2med.foundation.web.static_page import static_page

MAX_ROWS = 60
"""Largest number of rows of a table on a page with files. The CSV file has all rows."""
LONG_FACT = 10
"""Characters above which a fact is set in smaller type."""
PARAGRAPH_CLASSES = {"lead": "lead", "quiet": "note"}
"""Tone -> class of a paragraph."""

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
    inner = ""
    for group, blocks in itertools.groupby(section.blocks, key=_group):
        content = "".join(_block(block, has_files) for block in blocks)
        inner += f'<div class="{group}">{content}</div>' if group else content
    anchor = f' id="{escape(section.name)}"' if section.name else ""
    return f'<section class="section"{anchor}>{inner}</section>\n'


def _group(block: Block) -> str:
    """Return the class of a group of blocks: bars are side by side if there is room, verbatim texts close together."""
    if isinstance(block, Verbatim):
        return "texts"
    return "columns" if isinstance(block, Table) and isinstance(block.chart, Bars) else ""


def _block(block: Block, has_files: bool) -> str:
    match block:
        case Heading():
            tone = block.aside_tone if block.aside_tone in ("good", "warning", "error") else ""
            aside = f" <small{_class(tone)}>{escape(block.aside)}</small>" if block.aside else ""
            return f"<h2>{escape(block.text)}{aside}</h2>"
        case Paragraph():
            return _paragraph(block)
        case Bullets():
            items = "".join(f"<li>{escape(text)}</li>" for text in block.texts)
            return f"<ul{_class('notes' if block.are_notes else '')}>{items}</ul>"
        case Verbatim():
            text = f'<div class="command"><pre>{escape(block.text)}</pre></div>'
            return f"<details><summary>{escape(block.title)}</summary>{text}</details>"
        case Table():
            title = f"<h3>{escape(block.title)}</h3>" if block.title else ""
            return f'<div class="block">{title}{_content(block, has_files)}</div>'


def _paragraph(paragraph: Paragraph) -> str:
    pieces = (f"<mark>{escape(text)}</mark>" if source else escape(text) for text, source in paragraph.pieces)
    label = f"<strong>{escape(paragraph.label)}</strong> " if paragraph.label else ""
    text = "".join(pieces)
    text = label + (f"<strong>{text}</strong>" if paragraph.tone == "strong" else text)
    return f"<p{_class(PARAGRAPH_CLASSES.get(paragraph.tone, ''))}>{text}</p>" if text else ""


def _content(table: Table, has_files: bool) -> str:
    """Return what is below the title of a table."""
    if isinstance(table.chart, Bars):
        return _bars(table.title, table.chart)
    drawn = dots(table.chart) if table.chart else ""
    chart = f'<div class="plot panel">{drawn}</div>' if drawn else ""
    file, shown_rows = "", table.rows
    if has_files and table.name:
        shown_rows = table.rows[:MAX_ROWS]
        more = f"{len(table.rows) - MAX_ROWS:,} more rows in " if len(table.rows) > MAX_ROWS else ""
        name = escape(f"{table.name}.csv")
        file = f'<p class="muted"><small>{more}<a href="{name}">{name}</a></small></p>'
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return f"{chart}{_table(table, shown_rows)}{file}{note}"


def _bars(title: str, bars: Bars) -> str:
    most = max((count for _, count in bars.rows), default=0) or 1
    rows = (
        f'<tr><th scope="row">{escape(label)}</th><td class="bar">{bar(count / most)}</td>'
        f'<td class="num">{count:,}</td></tr>'
        for label, count in bars.rows
    )
    return _wide(title, f'<table class="bars"><tbody>{"".join(rows)}</tbody></table>')


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
