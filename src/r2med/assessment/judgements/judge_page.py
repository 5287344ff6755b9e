"""The page of `r2med judge`: what the judges said, how they did on controls, and how far they agree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from r2med.assessment.judgements.committee import JudgedPools
from r2med.assessment.panels.control_table import control_table
from r2med.assessment.panels.ratings import RaterAgreement, Ratings, agreement_table
from r2med.foundation.pages.page import Page, Section, Table


def judge_page(judged: JudgedPools, file: str) -> Page:
    """Return the page about a committee."""
    labels: list[list[Any]] = [
        [each.dataset, each.judge, each.labels, each.positive, sum(each.failures.values())] for each in judged.reports
    ]
    heads = ("dataset", "judge", "labels", "relevant", "no usable answer")
    sections = [
        Section("Labels", [Table.of(heads, labels, name="judge-labels")], _lead(judged, file), list(judged.notices)),
        Section("Planted controls", list(_control_tables(judged))),
        Section("Agreement", list(_agreement_tables(judged))),
    ]
    sections = [section for section in sections if section.parts]
    return Page("Labels of LLM judges", sections, kind="judge")


def _control_tables(judged: JudgedPools) -> Iterator[Table]:
    if any(test.counts for test in judged.tests.values()):
        yield control_table(judged.tests, name="judge-controls")


def _agreement_tables(judged: JudgedPools) -> Iterator[Table]:
    if found := _between(judged):
        rows = [([who], each) for who, each in found]
        yield agreement_table(("judges",), rows, "Judges", name="judge-agreement")


def _lead(judged: JudgedPools, file: str) -> str:
    pairs = len({(label.dataset, label.query, label.document) for label in judged.overlay.labels})
    return f"{pairs:,} passages that systems return have new labels. They are in {file}; the dataset is unchanged."


def _between(judged: JudgedPools) -> list[tuple[str, RaterAgreement]]:
    """Return the agreement of all judges on the pool, then that of each two."""
    labels = judged.overlay.labels
    given = (((each.dataset, each.query, each.document), each.judge, each.said) for each in labels if not each.repeat)
    found = Ratings.of([*judged.rubric.by_word], given).agreements()
    return [(" and ".join(each.raters) if len(each.raters) == 2 else "all judges", each) for each in found]


def judge_json(judged: JudgedPools, file: str) -> dict[str, Any]:
    """Return what the page shows as JSON values."""
    return {
        "rubric": judged.rubric.name,
        "overlay": file,
        "labels": len(judged.overlay.labels),
        "judges": [asdict(each) for each in judged.reports],
        "controls": [
            {"judge": judge, "trust": test.trust, "controls": [asdict(each) for each in test.counts]}
            for judge, test in judged.tests.items()
        ],
        "notices": list(judged.notices),
        "agreement_of_judges": [_agreement_json(*each) for each in _between(judged)],
        "cost": {"calls": judged.cost.calls, "tokens": judged.cost.llm_tokens, "dollars": judged.cost.dollars},
    }


def _agreement_json(who: str, found: RaterAgreement) -> dict[str, Any]:
    coefficients = {"agree": found.observed, "kappa": found.kappa, "alpha": found.alpha, "ac": found.gwet}
    values = {
        name: {"value": None if math.isnan(each.value) else each.value, "low": each.low, "high": each.high}
        for name, each in coefficients.items()
        if each is not None
    }
    return {"judge": who, "passages": found.items, **values}
