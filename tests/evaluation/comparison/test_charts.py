"""Figures: the same inputs give the same bytes, names are text, and lines are where they belong."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import pytest

from r2med.evaluation.comparison import charts
from r2med.evaluation.comparison.gaps import Gap
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.estimate import Estimate
from support.by_day import some_by_day

HOSTILE = "$x$_{a}<script>&\x00\u202e " + "long → " * 30
FIGURES = {
    "bars": partial(charts.bars, {HOSTILE: Estimate(30, 20, 40), "b": Estimate(0, 0, 0)}, "nDCG@10", "b"),
    "heat map": partial(charts.heat_map, [HOSTILE, "b"], ["d", HOSTILE], np.zeros((2, 2)), "nDCG@10"),
    "cost": partial(charts.quality_cost, {HOSTILE: (0.0, 1.0), "b": (1e-4, 1.0), "c": (90.0, 7.0)}, "dollars", "MRR"),
    "family": partial(
        charts.quality_cost,
        {HOSTILE: (1.0, 1.0), "b": (2.0, 3.0), "c": (3.0, 2.0)},
        "tokens",
        "MRR",
        {"b": Estimate(3, 1, 5), "c": Estimate(2)},
        [[HOSTILE, "c"]],
        ["c"],
    ),
    "free": partial(charts.quality_cost, {HOSTILE: (0.0, 1.0)}, "dollars", "MRR"),
    "gains": partial(charts.gains, [(HOSTILE, Gap(-1, -2, 0.5, 0.2, 0.3))], "title", HOSTILE, "b"),
}


@pytest.mark.parametrize("name", some_by_day(FIGURES, 3))
def test_a_figure_is_drawn_twice_to_the_same_bytes_whatever_names_are_like(name: str) -> None:
    files = charts.rendered(FIGURES[name])
    assert files == charts.rendered(FIGURES[name])
    root = ET.fromstring(files["svg"])
    assert root.tag.endswith("svg")
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert b"<dc:date>" not in files["svg"]
    assert files["png"].startswith(b"\x89PNG")


def test_no_system_on_the_pareto_line_is_beaten_at_no_more_cost() -> None:
    points = {"free": (0.0, 10.0), "worse": (1.0, 9.0), "good": (1.0, 20.0), "same": (2.0, 20.0), "best": (9.0, 30.0)}
    assert charts.pareto(points) == ["free", "good", "best"]


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"\[report\]"):
        charts.rendered(FIGURES["bars"])
