"""`r2med.plan` returns what a call would do, and stops it there."""

import pytest

import r2med
from r2med.public.call_plan import plan, planned


def call(system: str, *, data: str, done: list[str]) -> str:
    planned(lambda: f"{system} on {data}")
    done.append(system)
    return "result"


def test_the_plan_of_a_call_is_returned_and_nothing_is_done() -> None:
    done: list[str] = []
    assert plan(call, "bm25", data="demo", done=done) == "bm25 on demo"
    assert not done
    assert call("bm25", data="demo", done=done) == "result"
    assert done == ["bm25"]


def test_a_function_without_a_plan_says_so() -> None:
    with pytest.raises(r2med.UserError, match="score has no plan"):
        plan(r2med.score, {"1": {"d": 1}}, {"1": {"d": 1.0}})
