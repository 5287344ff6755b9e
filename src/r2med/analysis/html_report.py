"""The page of an analysis: one file in the board's look, without scripts, in which nothing of the data is markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from r2med.analysis.findings import Cell, Section, Table
from r2med.analysis.svg_charts import glyph
from r2med.comparison.comparison import Interval
from r2med.core.version import __version__
from r2med.web.static_page import static_page

SHOWN = 60
"""Rows of a table on the page; its CSV file has all."""

_OWN = """
.plot { overflow-x: auto; max-width: 50rem; } .plot svg.chart { min-width: 32rem; }
.block .table-wrap { width: fit-content; max-width: 100%; }
.block table { width: auto; min-width: min(100%, 40rem); } td .name { display: inline-block; min-width: 7.5rem; }
#nav a { white-space: nowrap; }
svg.glyph { display: inline-block; vertical-align: middle; margin-left: 0.5rem; }
svg.glyph .axis { stroke: var(--line); }
td .range { color: var(--ink-3); font-size: var(--t-xs); margin-left: 0.35rem; }
.block { display: grid; gap: var(--s3); grid-template-columns: minmax(0, 1fr); }
.lead { font-family: var(--serif); font-size: var(--t-l); color: var(--ink); }
ul.notes { margin: 0; padding-left: 1.2rem; color: var(--ink-2); font-size: var(--t-s); max-width: 90ch; }
"""


def page(sections: Sequence[Section], about: str) -> str:
    """Return the page; `about` says what was looked at."""
    links = "".join(f'<a href="#{escape(each.name, quote=True)}">{escape(each.title)}</a>' for each in sections)
    lede = f"""<div class="lede"><p class="eyebrow">{escape(about)}</p><h1>What the benchmark and its results show</h1>
<p>Figures stand with their 95 % intervals: where they would lie if other queries of the same kind had been asked.
Those over a handful of queries say little. Every table is a CSV file beside this page.</p></div>
"""
    main = lede + "".join(map(_section, sections))
    return static_page("r2med analyses", "analyses", main, f"r2med {__version__}", _OWN, links)


def _section(section: Section) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
    return (
        f'<section class="section" id="{escape(section.name, quote=True)}"><h2>{escape(section.title)}</h2>'
        f'<p class="lead">{escape(section.lead)}</p>{"".join(map(_block, section.tables))}'
        f"{f'<ul class=notes>{notes}</ul>' if notes else ''}</section>\n"
    )


def _block(table: Table) -> str:
    chart = f'<div class="plot panel">{table.chart}</div>' if table.chart else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    more = f"{len(table.rows) - SHOWN:,} more rows in " if len(table.rows) > SHOWN else ""
    file = escape(f"{table.name}.csv", quote=True)
    return (
        f'<div class="block"><h3>{escape(table.title)}</h3>{chart}{_table(table)}'
        f'<p class="muted"><small>{more}<a href="{file}">{file}</a></small></p>{note}</div>'
    )


def _table(table: Table) -> str:
    columns = list(zip(*table.rows, strict=True)) if table.rows else [() for _ in table.heads]
    spans = [_span(column) for column in columns]
    numeric = [bool(column) and not any(isinstance(cell, str) for cell in column) for column in columns]
    heads = "".join(f"<th{_class(n)}>{escape(head)}</th>" for head, n in zip(table.heads, numeric, strict=True))
    lines = []
    for row in table.rows[:SHOWN]:
        cells = zip(row, spans, numeric, strict=True)
        lines.append(
            "".join(f"<td{_class(n)}>{''.join(_cell(cell, span, table.digits))}</td>" for cell, span, n in cells)
        )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="table-wrap"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _class(numeric: bool) -> str:
    return ' class="num"' if numeric else ""


def _span(column: Sequence[Cell]) -> tuple[float, float]:
    known = [cell for cell in column if isinstance(cell, Interval)]
    lows, highs = [cell.bounds[0] for cell in known], [cell.bounds[1] for cell in known]
    return min(lows, default=0.0), max(highs, default=1.0)


def _cell(cell: Cell, span: tuple[float, float], digits: int) -> Iterator[str]:
    if isinstance(cell, Interval):
        yield f"{cell.value:.{digits}f}"
        if cell.low is not None:
            yield f'<span class="range">{cell.shown(digits)}</span>{glyph(cell, *span)}'
    elif isinstance(cell, float):
        yield f"{cell:.{digits}f}"
    elif isinstance(cell, int):
        yield f"{cell:,}"
    elif cell is None:
        yield "–"
    else:
        yield f'<bdi class="name">{escape(cell)}</bdi>'
