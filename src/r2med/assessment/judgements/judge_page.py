"""The page of `r2med judge`: what the judges said, how they did on controls, and how far they agree."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from r2med.assessment.judgements.committee import JudgedPools
from r2med.assessment.panels.planted_controls import LEAST_SHARE, ControlTest, share_of
from r2med.evaluation.measure.agreement import cohen_kappa, krippendorff_alpha
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.page import Page, Section, Table


def judge_page(judged: JudgedPools, file: str = "") -> Page:
    """Return the page about a committee."""
    names = {"relevance": "Relevant", "mimic": "Argue for another answer"}
    labels: list[list[Any]] = [
        [each.dataset, each.judge, each.labels, each.positive, sum(each.failures.values())] for each in judged.reports
    ]
    heads = ("dataset", "judge", "labels", names[judged.rubric.aspect].lower(), "no usable answer")
    sections = [
        Section("Labels", [Table.of(heads, labels, name="judge-labels")], _lead(judged, file), list(judged.notices)),
        Section("Planted controls", [_controls(judged)]),
        Section("Agreement", list(_agreement_tables(judged))),
    ]
    return Page("Labels of LLM judges", sections, kind="judge")


def _agreement_tables(judged: JudgedPools) -> Iterator[Table]:
    if rows := _between(judged):
        heads = ("judges", "passages", "Cohen's κ", "Krippendorff's α")
        yield Table.of(heads, rows, "Judges", name="judge-agreement")


def _lead(judged: JudgedPools, file: str) -> str:
    pairs = len({(label.dataset, label.query, label.document) for label in judged.overlay.labels})
    if not file:
        return f"{pairs:,} passages that systems return were labelled, and no overlay was written. {judged.fault}"
    return f"{pairs:,} passages that systems return have new labels. They are in {file}; the dataset is unchanged."


def _controls(judged: JudgedPools) -> Table:
    rows = [
        [test.judge, when, count.kind, "yes" if count.yes else "no", count.asked, share_of(count.right, count.asked)]
        for test in judged.tests
        for when, part in (("first", test.first), ("in the pool", test.mixed))
        for count in part.counts
    ]
    note = (
        "Share of controls that the judge gets right. A judge is not used if it gets less than half of a kind right, "
        f"or if the lower end of the interval of all kinds is not above {LEAST_SHARE:.0%}. Labels of the dataset can "
        "be wrong too, so less than 100 % is normal."
    )
    heads = ("judge", "asked when", "control", "right answer", "asked", "right")
    return Table.of(heads, rows, note=note, name="judge-controls")


def _between(judged: JudgedPools) -> list[list[Any]]:
    """Return judges, passages, κ and α: the agreement of each pair and of all judges on the pool.

    Grades are ordered, so κ has quadratic weights, as for the judges of a build.
    """
    said: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for label in judged.overlay.labels:
        said[label.dataset, label.query, label.document][label.judge] = label.said
    judges = list(dict.fromkeys(label.judge for label in judged.overlay.labels))
    if len(judges) < 2:
        return []
    ratings: Floats = np.array(
        [[judged.rubric.place(each[judge]) if judge in each else np.nan for judge in judges] for each in said.values()]
    )
    rows: list[list[Any]] = [
        [f"{a} and {b}", len(ratings), cohen_kappa(ratings[:, [judges.index(a), judges.index(b)]], "quadratic"), None]
        for a, b in combinations(judges, 2)
    ]
    rows.append(["all judges", len(ratings), None, krippendorff_alpha(ratings, "ordinal")])
    return rows


def judge_json(judged: JudgedPools, file: str = "") -> dict[str, Any]:
    """Return what the page shows as JSON values."""
    return {
        "aspect": judged.rubric.aspect,
        "rubric": judged.rubric.name,
        "overlay": file,
        "labels": len(judged.overlay.labels),
        "judges": [asdict(each) for each in judged.reports],
        "controls": [
            {
                "judge": test.judge,
                "trust": test.trust,
                "fault": test.fault,
                "first": _counts(test.first),
                "mixed": _counts(test.mixed),
            }
            for test in judged.tests
        ],
        "notices": list(judged.notices),
        "agreement_of_judges": [_agreement_json(row) for row in _between(judged)],
        "cost": {"calls": judged.cost.calls, "tokens": judged.cost.llm_tokens, "dollars": judged.cost.dollars},
    }


def _agreement_json(row: Sequence[Any]) -> dict[str, Any]:
    who, passages, *coefficients = row
    values = {
        name: {"value": None if math.isnan(each.value) else each.value, "low": each.low, "high": each.high}
        for name, each in zip(("kappa", "alpha"), coefficients, strict=True)
        if each is not None
    }
    return {"judge": who, "passages": passages, **values}


def _counts(test: ControlTest) -> list[dict[str, Any]]:
    return [asdict(each) for each in test.counts]
