"""The helper of tests about messages: a fact that is missing, or only part of another, is noticed."""

from __future__ import annotations

import pytest

from r2med.foundation.core.errors import UserError
from support.facts import each_states, error_states, some_states, states

LINE = "notes.csv:3: grade 'very' of q10 is none of 1,048,576 (see --grade)"


def test_facts_are_found_in_any_order_and_numbers_with_separators() -> None:
    states(LINE, "--grade", "notes.csv:3", "'very'", 1048576, "q10")


@pytest.mark.parametrize("fact", ["q1", "otes.csv", "notes.csv:30", 48, 1, "1,048", "--grades", "Very"])
def test_a_fact_that_is_missing_or_only_part_of_another_is_noticed(fact: object) -> None:
    with pytest.raises(AssertionError, match="does not state"):
        states(LINE, fact)


@pytest.mark.parametrize("message", ["two\nlines", ""])
def test_a_message_is_one_line(message: str) -> None:
    with pytest.raises(AssertionError, match="not one line"):
        states(message)


def test_facts_of_two_messages_are_not_mixed() -> None:
    some_states(["q1 line 3", "q2 line 4"], "q2", 4)
    with pytest.raises(AssertionError):
        some_states(["q1 line 3", "q2 line 4"], "q2", 3)
    with pytest.raises(AssertionError):
        each_states(["q1 line 3", "q2 line 4"], ["q1"])
    with pytest.raises(AssertionError):
        each_states(["q1 line 3", "q2 line 4"], ["q2"], ["q1"])


def test_an_error_is_one_of_the_user_with_its_facts() -> None:
    with error_states("q1", 3):
        raise UserError("line 3 has q1")
    with pytest.raises(AssertionError), error_states("q2"):
        raise UserError("line 3 has q1")
    with pytest.raises(ValueError, match="q1"), error_states("q1"):
        raise ValueError("q1")
