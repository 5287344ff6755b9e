"""Draw the figures of a report. The colours of Okabe and Ito suit colour-blind readers. Names of any length fit."""

from __future__ import annotations

import contextlib
import io
import textwrap
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from r2med.evaluation.comparison.gaps import Gap
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.core.errors import MissingExtraError
from r2med.foundation.pages.cells import signed
from r2med.foundation.pages.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, VERMILION, GREY, INK = "#0072B2", "#E69F00", "#D55E00", "#B5B5B5", "#222222"

WIDTH = 7.2
"""Width of a figure in inches: two columns of a paper."""

LUMINANCE = (0.2126, 0.7152, 0.0722)
"""Weights of red, green and blue in the brightness of a colour."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "text.color": INK,
    "text.parse_math": False,  # a dollar in a name is a dollar
    "axes.edgecolor": "#888888",
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "r2med",  # the same inputs give the same bytes
}


def rendered(draw: Callable[[], Figure]) -> dict[str, bytes]:
    """Return a figure as SVG and PNG. The same inputs give the same bytes."""
    with _style():
        figure = draw()
        files = {}
        for suffix, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})):
            out = io.BytesIO()
            figure.savefig(out, format=suffix, metadata=metadata, dpi=200, bbox_inches="tight", pad_inches=0.1)
            files[suffix] = out.getvalue()
    return files


def can_draw() -> bool:
    """Return True if matplotlib, the extra `report`, is installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


@contextlib.contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("drawing figures", "report") from None
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a name may have letters that the font lacks
        yield


def _axes(height: float, title: str) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, pad=10)
    return figure, axes


def _label(name: str, width: int = 38, lines: int = 3) -> str:
    """Return a name in a few short lines, without characters that cannot be drawn."""
    clean = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
    return "\n".join(textwrap.wrap(clean, width, max_lines=lines, placeholder=" …", break_on_hyphens=False)) or clean


def bars(figures: Mapping[str, Estimate], measure: str, baseline: str = "", lower_is_better: bool = False) -> Figure:
    """Draw a bar with its interval for each system. The best system is on top."""
    names = sorted(figures, key=lambda name: figures[name].value, reverse=lower_is_better)
    values = np.array([figures[name].value for name in names])
    bounds = np.array([figures[n].bounds for n in names]).reshape(-1, 2)
    reach = [values - bounds[:, 0], bounds[:, 1] - values]
    figure, axes = _axes(0.9 + 0.36 * len(names), f"{measure} × 100, mean of the datasets")
    colours = [ORANGE if name == baseline else BLUE for name in names]
    axes.barh(range(len(names)), values, 0.62, color=colours)
    axes.errorbar(values, range(len(names)), xerr=np.maximum(reach, 0), fmt="none", ecolor=INK, lw=1, capsize=2.5)
    for line, name in enumerate(names):
        axes.annotate(
            f"{values[line]:.1f}", (figures[name].bounds[1], line), (5, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, max(1.0, 1.1 * max(each.bounds[1] for each in figures.values())))
    axes.set_ylim(-0.6, len(names) - 0.4)
    note = f"95 % intervals{'; orange: the baseline' if baseline else ''}{'; lower is better' * lower_is_better}"
    axes.set_xlabel(note)
    return figure


def heat_map(systems: Sequence[str], datasets: Sequence[str], values: Floats, measure: str) -> Figure:
    """Draw a heat map of systems × datasets, with the score in each cell."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("paper", ["#F7FBFF", "#DEEBF7", "#9ECAE1", "#4292C6", "#08519C"])
    figure, axes = _axes(1.1 + 0.4 * len(systems), f"{measure} × 100, by dataset")
    top = max(1.0, float(values.max()))
    axes.imshow(values, cmap=colours, vmin=0, vmax=top, aspect="auto")
    for line, row in enumerate(values):
        for column, value in enumerate(row):
            light = float(np.dot(np.power(colours(value / top)[:3], 2.2), LUMINANCE))
            ink = "white" if light < 0.21 else INK  # the colour with the better contrast
            axes.text(column, line, f"{value:.1f}", ha="center", va="center", color=ink, fontsize=8)
    axes.set_xticks(range(len(datasets)), [_label(name, 10, 3) for name in datasets])
    axes.set_yticks(range(len(systems)), [_label(name) for name in systems])
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.set_xticks(np.arange(len(datasets) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(systems) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", lw=1.5)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)
    return figure


def pareto(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the systems that no system beats at the same or lower cost, cheapest first. Points: (cost, quality)."""
    line: list[str] = []
    best = float("-inf")
    for name in sorted(points, key=lambda name: (points[name][0], -points[name][1], name)):
        if points[name][1] > best:
            line.append(name)
            best = points[name][1]
    return line


def quality_cost(
    points: Mapping[str, tuple[float, float]],
    cost: str,
    measure: str,
    means: Mapping[str, Estimate] | None = None,
    families: Sequence[Sequence[str]] = (),
    near: Collection[str] = (),
) -> Figure:
    """Draw quality against cost, with a number for each system, a legend, and the Pareto front.

    `means` are the scores with their intervals. The systems of a family are joined by a thin line, and those of `near`,
    which do not differ significantly from the front, have a ring.
    """
    line = pareto(points)
    ranked = sorted(points, key=lambda name: (-points[name][1], name))
    labels = [_label(name, 40) for name in ranked]
    lines = [label.count("\n") + 1.6 for label in labels]
    figure, axes = _axes(max(3.4, 0.7 + 0.13 * sum(lines)), f"{measure} × 100 against {cost}")
    _cost_axis(axes, [spent for spent, _ in points.values()])
    for number, name in enumerate(ranked):
        style: dict[str, Any] = {"color": BLUE, "fontweight": "bold"} if name in line else {"color": INK}
        axes.plot(
            *points[name], "o", ms=7, color=BLUE if name in line else GREY, mec="white", zorder=4 if name in line else 3
        )
        height = 1 - (sum(lines[:number]) + lines[number] / 2) / sum(lines)
        text: dict[str, Any] = {"xycoords": "axes fraction", "va": "center", "fontsize": 7.5, "annotation_clip": False}
        axes.annotate(str(number + 1), (1.05, height), ha="right", **text, **style)
        axes.annotate(labels[number], (1.065, height), **text, **style)
    _draw_families(axes, points, means or {}, families, near)
    for names in _neighbours(points, ranked):
        numbers = ", ".join(str(ranked.index(name) + 1) for name in names)
        bold = "bold" if names[0] in line else "normal"
        axes.annotate(numbers, points[names[0]], (4, 4), textcoords="offset points", fontsize=8, fontweight=bold)
    steps = [points[name] for name in line] + [(max(spent for spent, _ in points.values()), points[line[-1]][1])]
    axes.step(*zip(*steps, strict=True), where="post", color=BLUE, lw=1.5, zorder=1)
    axes.margins(x=0.08, y=0.12)
    notes = [f"{cost}; blue: no system is better at no more cost"]
    notes += ["thin lines: one system with other depths, samples, turns or LLMs"] * bool(families)
    notes += ["rings: not significantly different from the blue line"] * bool(near)
    axes.set_xlabel("\n".join(notes))
    axes.set_ylabel(f"{measure} × 100")
    axes.grid(color="#EEEEEE")
    axes.set_axisbelow(True)
    return figure


def _draw_families(
    axes: Axes,
    points: Mapping[str, tuple[float, float]],
    means: Mapping[str, Estimate],
    families: Sequence[Sequence[str]],
    near: Collection[str],
) -> None:
    """Draw the interval of each system, a line through each family, and a ring around each system of `near`."""
    for name, mean in means.items():
        axes.plot([points[name][0]] * 2, mean.bounds, color=GREY, lw=1, zorder=1)
    for members in families:
        places = sorted(points[name] for name in members)
        axes.plot(*zip(*places, strict=True), color=ORANGE, lw=1, zorder=2)
    for name in near:
        axes.plot(*points[name], "o", ms=12, mfc="none", mec=INK, mew=0.8, zorder=3)


def _cost_axis(axes: Axes, costs: Sequence[float]) -> None:
    """Use a logarithmic axis if costs differ much. A cost of 0 has a place too."""
    positive = [spent for spent in costs if spent > 0]
    if positive and max(positive) > 20 * min(positive):
        free = len(positive) < len(costs)
        axes.set_xscale("symlog" if free else "log", **({"linthresh": min(positive)} if free else {}))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.xaxis.set_minor_formatter(lambda value, _: "")


def _neighbours(points: Mapping[str, tuple[float, float]], names: Sequence[str]) -> list[list[str]]:
    """Return groups of systems whose points are so close that their numbers would overlap."""
    places = np.array([points[name] for name in names])
    places[:, 0] = np.log(places[:, 0] + 1e-3 * max(places[:, 0].max(), 1e-9))
    places /= np.maximum(np.ptp(places, axis=0), 1e-9)
    groups: list[list[int]] = []
    for number, place in enumerate(places):
        near = [group for group in groups if (np.abs(places[group[0]] - place) < (0.04, 0.03)).all()]
        near[0].append(number) if near else groups.append([number])
    return [[names[number] for number in group] for group in groups]


def gains(rows: Sequence[tuple[str, Gap]], title: str, before: str, after: str) -> Figure:
    """Draw the difference of two systems on each slice, with its interval. Significant differences are filled."""
    figure, axes = _axes(1.1 + 0.32 * len(rows), title)
    axes.axvline(0, color="#888888", lw=1)
    for line, (_, gap) in enumerate(reversed(rows)):
        colour = BLUE if gap.difference >= 0 else VERMILION
        low, high = (gap.difference, gap.difference) if gap.low is None or gap.high is None else (gap.low, gap.high)
        axes.plot([low, high], [line, line], color=colour, lw=1.6, zorder=2)
        face = colour if gap.significant else "white"
        axes.plot(gap.difference, line, "o", ms=7, mfc=face, mec=colour, mew=1.6, zorder=3)
        axes.annotate(signed(gap.difference), (high, line), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [_label(label) for label, _ in reversed(rows)])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.margins(x=0.12)
    names = "\n".join((_label(f"{after}", 70), _label(f"over {before}", 70)))
    axes.set_xlabel(f"{names}\n95 % intervals; filled: significant (Benjamini–Hochberg); in brackets: queries")
    axes.grid(axis="x", color="#EEEEEE")
    axes.set_axisbelow(True)
    return figure
