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
from r2med.assessment.judgements.planted import KNOWN, OTHER_QUERY, SWAPPED, UNRELATED
from r2med.evaluation.measure.agreement import cohen_kappa, krippendorff_alpha
from r2med.evaluation.measure.intervals import wilson
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Page, Section, Table

LABELLED = (KNOWN, OTHER_QUERY, UNRELATED, SWAPPED)
"""Controls that speak about the labels of the dataset. The others are made to mislead."""


def judge_page(judged: JudgedPools, file: str = "") -> Page:
    """Return the page about a committee."""
    names = {"relevance": "Relevant", "mimic": "Argue for another answer"}
    labels: list[list[Any]] = [
        [each.dataset, each.judge, each.labels, each.positive, sum(each.failures.values())] for each in judged.reports
    ]
    heads = ("dataset", "judge", "labels", names[judged.rubric.aspect].lower(), "no usable answer")
    sections = [
        Section("Labels", [Table.of(heads, labels, name="judge-labels")], _lead(judged, file)),
        Section("Planted controls", [_controls(judged)]),
        Section("Agreement", list(_agreement_tables(judged))),
    ]
    return Page("Labels of LLM judges", sections, kind="judge")


def _agreement_tables(judged: JudgedPools) -> Iterator[Table]:
    kinds = (
        ("judge", _with_dataset(judged), "Judges and the labels of the dataset", "judge-dataset"),
        ("judges", _between(judged), "Judges", "judge-agreement"),
    )
    for who, rows, title, name in kinds:
        if rows:
            yield Table.of((who, "passages", "Cohen's κ", "Krippendorff's α"), rows, title, name=name)


def _lead(judged: JudgedPools, file: str) -> str:
    pairs = len({(label.dataset, label.query, label.document) for label in judged.overlay.labels})
    where = f" They are in {file}; the dataset is unchanged." if file else ""
    return f"{pairs:,} passages that systems return have new labels.{where}"


def _controls(judged: JudgedPools) -> Table:
    rows = [
        [each.dataset, each.judge, count.kind, count.asked, share_of(count.right, count.asked)]
        for each in judged.reports
        for count in each.controls
    ]
    note = (
        "Share of controls that the judge gets right. A judge that gets less than half of a kind right is stopped. "
        "Labels of the dataset can be wrong too, so less than 100 % is normal."
    )
    return Table.of(("dataset", "judge", "control", "asked", "right"), rows, note=note, name="judge-controls")


def share_of(right: int, asked: int) -> Estimate | None:
    """Return a share with Wilson's interval; None if nothing was asked."""
    if not asked:
        return None
    low, high = wilson(np.array(right / asked), np.array(float(asked))).tolist()
    return Estimate(right / asked, low, high)


def _with_dataset(judged: JudgedPools) -> list[list[Any]]:
    """Return judge, passages, κ and α: its agreement with the dataset, on the controls that are about its labels."""
    rows: list[list[Any]] = []
    for judge in dict.fromkeys(answer.judge for answer in judged.controls):
        about = [answer for answer in judged.controls if answer.judge == judge and answer.kind in LABELLED]
        ratings = np.array([[answer.expected, answer.said] for answer in about], dtype=np.float64).reshape(-1, 2)
        if len(ratings) > 1:
            rows.append([judge, len(ratings), cohen_kappa(ratings), krippendorff_alpha(ratings)])
    return rows


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
        "overlay": file,
        "labels": len(judged.overlay.labels),
        "judges": [asdict(each) for each in judged.reports],
        "agreement_with_dataset": [_agreement_json(row) for row in _with_dataset(judged)],
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
