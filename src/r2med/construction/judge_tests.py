"""How the judges of a build answered their controls, as its records keep it and as its datasheet says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import Any

from r2med.assessment.panels.planted_controls import UNTESTED, ControlTest, KindCount

TEST_FACT = "judge tests"
"""Name of the fact of a step that judged."""


def facts_of_test(judge: str, test: ControlTest) -> dict[str, Any]:
    """Return a test as JSON values."""
    return {"judge": judge, "controls": [list(astuple(each)) for each in test.counts]}


def judge_tests(facts: Iterable[Mapping[str, Any]]) -> dict[str, ControlTest]:
    """Return the tests of all judges from the facts of steps: judge -> test."""
    rows = [row for each in facts for row in each.get(TEST_FACT, ())]
    return {row["judge"]: ControlTest(tuple(KindCount(*each) for each in row["controls"])) for row in rows}


def judge_trust(tests: Iterable[ControlTest]) -> str:
    """Return what readers of the labels must know: one sentence without a full stop."""
    given = list(tests)
    if not given or any(not each.is_enough for each in given):
        return f"judge {UNTESTED}"
    right, asked = (sum(each.right for each in given), sum(each.asked for each in given))
    return f"judge tested: {right:,} of {asked:,} controls right"
