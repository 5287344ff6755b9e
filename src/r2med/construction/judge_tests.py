"""How the judges of a build answered their controls, as its records keep it and as its datasheet says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import Any

from r2med.assessment.panels.panel import FAILED, UNTESTED, JudgeTest
from r2med.assessment.panels.planted_controls import ControlTest, KindCount

TEST_FACT = "judge tests"
"""Name of the fact of a step that judged."""


def facts_of_test(test: JudgeTest) -> dict[str, Any]:
    """Return a test as JSON values."""
    first, mixed = ([list(astuple(each)) for each in part.counts] for part in (test.first, test.mixed))
    return {"judge": test.judge, "first": first, "mixed": mixed, "untested": test.untested}


def judge_tests(facts: Iterable[Mapping[str, Any]]) -> list[JudgeTest]:
    """Return the tests of all judges from the facts of steps."""
    rows = [row for each in facts for row in each.get(TEST_FACT, ())]
    return [JudgeTest(row["judge"], _test(row["first"]), _test(row["mixed"]), untested=row["untested"]) for row in rows]


def _test(counts: Iterable[Iterable[Any]]) -> ControlTest:
    return ControlTest(tuple(KindCount(*each) for each in counts))


def judge_trust(tests: Iterable[JudgeTest]) -> str:
    """Return what readers of the labels must know: one sentence without a full stop."""
    given = list(tests)
    said = {each.trust for each in given}
    if FAILED in said:
        return f"judge {FAILED}"
    if not given or UNTESTED in said:
        return f"judge {UNTESTED}"
    both = sum((each.both for each in given), ControlTest())
    return f"judge tested: {both.right:,} of {both.asked:,} controls right"
