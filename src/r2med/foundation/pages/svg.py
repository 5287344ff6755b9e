"""Charts as plain SVG with all text escaped: of HTML pages, in the page's own colours, and as files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from r2med.foundation.pages.cells import Estimate
from r2med.foundation.pages.page import Dots

WIDTH, LEFT, RIGHT, TOP = 640, 190, 16, 34
ROW, STEP = 14, 10
BAR_STYLE = 'stroke="currentColor" stroke-width="2" opacity="0.55"'
LETTER = 6.6
"""Room of a letter."""
LABEL_LETTERS = 27
"""Letters of a label that fit to the left of a chart."""
FILE_STYLE = "text { font: 12px sans-serif; fill: #222 } .grid { stroke: #ddd } .k1 { color: #0072b2 }"
"""Look of a chart of one series outside a page."""


def dots(chart: Dots) -> str:
    """Return a row for each label, in it a dot and an interval for each series; series keep their colours."""
    height, parts = _dot_rows(chart, LEFT)
    return _svg(height, chart.axis, parts) if parts else ""


def dots_file(chart: Dots) -> str:
    """Return dots of one series as a file that stands alone, with room for whole labels."""
    # A file with control characters would be no XML.
    rows = [
        ("".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in label), figures)
        for label, figures in chart.rows
    ]
    left = max(LEFT, 12 + LETTER * max((len(label) for label, _ in rows), default=0))
    height, parts = _dot_rows(Dots(rows, chart.axis), left)
    styled = [f"<style>{FILE_STYLE}</style>", *parts]
    return _svg(height, chart.axis, styled, WIDTH - LEFT + left, ' xmlns="http://www.w3.org/2000/svg"') + "\n"


def _dot_rows(chart: Dots, left: float) -> tuple[float, list[str]]:
    """Return the height of a chart of dots, and what is drawn in it. `left` is the room of the labels."""
    rows, axis = chart.rows, chart.axis
    known = [figure for _, figures in rows for figure in figures.values() if figure]
    if not known:
        return 0, []
    names = list(dict.fromkeys(name for _, figures in rows for name in figures))
    ticks = _ticks(min(0.0, *(each.bounds[0] for each in known)), max(each.bounds[1] for each in known))
    depth = len(names) * ROW + STEP
    bottom = TOP + depth * len(rows)
    right = WIDTH - LEFT + left - RIGHT
    scale = _Scale(ticks[0], ticks[-1], left, right)
    parts = [*_legend(names), *_grid(ticks, scale, bottom), _text(right, bottom + 34, axis, "end")]
    for number, (label, figures) in enumerate(rows):
        top = TOP + number * depth
        parts.append(_text(left - 10, top + depth / 2 + 1, label, "end", int((left - 10) / LETTER)))
        for series, figure in figures.items():
            if figure:
                parts.append(
                    _dot(
                        figure, scale, top + names.index(series) * ROW + STEP, names.index(series), f"{label}, {series}"
                    )
                )
    return bottom + 40, parts


def glyph(figure: Estimate, low: float, high: float) -> str:
    """Return a dot on its interval for a cell; the scale from low to high is that of its column."""
    scale = _Scale(low, high, 4, 66)
    drawn = f'<line class="axis" x1="4" x2="66" y1="6" y2="6"/>{_dot(figure, scale, 6, 0, "")}'
    return f'<svg class="glyph" viewBox="0 0 70 12" width="70" height="12" aria-hidden="true">{drawn}</svg>'


def bar(share: float) -> str:
    """Return a bar of a share of its cell's width."""
    drawn = f'<rect class="fill" x="0" y="0" width="{100 * share:.2f}" height="10"/>'
    return f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'


class _Scale:
    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._span = low, (high - low) or 1.0
        self._start, self._length = start, end - start

    def __call__(self, value: float) -> float:
        return self._start + (value - self._low) / self._span * self._length


def _ticks(low: float, high: float) -> list[float]:
    """Return five to ten round values that hold a span."""
    rough = ((high - low) or 1.0) / 6
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]


def _grid(ticks: Sequence[float], scale: _Scale, bottom: float) -> Iterator[str]:
    for tick in ticks:
        x = scale(tick)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}"/>'
        yield _text(x, bottom + 16, f"{tick:g}", "middle")


def _legend(names: Sequence[str]) -> Iterator[str]:
    x = 8.0
    room = max(8, int((WIDTH / max(1, len(names)) - 30) / LETTER))
    for number, name in enumerate(names):
        # Names of one chart often differ at their ends only.
        shown = name if len(name) <= room else f"{name[: room // 2 - 1]}…{name[-(room // 2) :]}"
        yield f'<circle class="k{number % 6 + 1}" cx="{x:.0f}" cy="12" r="4" fill="currentColor"/>'
        yield _text(x + 9, 16, shown, "start")
        x += 30 + LETTER * len(shown)


def _dot(figure: Estimate, scale: _Scale, y: float, number: int, label: str) -> str:
    title = f"<title>{escape(f'{label}: {_described(figure)}')}</title>" if label else ""
    low, high, at = (scale(value) for value in (*figure.bounds, figure.value))
    return (
        f'<g class="k{number % 6 + 1}">{title}'
        f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}" {BAR_STYLE}/>'
        f'<circle cx="{at:.1f}" cy="{y:.1f}" r="3.5" fill="currentColor"/></g>'
    )


def _described(figure: Estimate) -> str:
    interval = "no interval" if figure.low is None else "95 % interval {:.3g} to {:.3g}".format(*figure.bounds)
    return f"{figure.value:.3g}, {interval}"


def _text(x: float, y: float, text: str, anchor: str, letters: int = LABEL_LETTERS) -> str:
    shown = text if len(text) <= letters + 20 * (anchor != "end") else f"{text[: letters - 1]}…"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(shown)}</text>'


def _svg(height: float, label: str, parts: Sequence[str], width: float = WIDTH, namespace: str = "") -> str:
    return (
        f'<svg{namespace} class="chart" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{escape(label, quote=True)}">{"".join(parts)}</svg>'
    )
