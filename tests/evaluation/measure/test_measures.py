"""A measure is a value: it prints as it is typed and parses back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.evaluation.measure import Measure
from r2med.foundation.core.errors import UserError


@given(st.sampled_from(["nDCG", "MAP", "R", "P", "MRR"]), st.integers(1, 10_000))
def test_a_measure_prints_as_it_is_typed_and_parses_back(family, cutoff):
    measure = Measure(family, cutoff)
    assert Measure.parse(str(measure)) == measure
    assert Measure.parse(str(measure).lower()) == measure


def test_measures_without_a_cutoff_print_bare():
    assert str(Measure.parse("mrr")) == "MRR"
    assert Measure.parse("MAP") == Measure("MAP")


def test_recall_and_precision_may_be_written_out():
    assert Measure.parse("Recall@100") == Measure("R", 100)
    assert Measure.parse("precision@5") == Measure("P", 5)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nDGC@10", r"did you mean nDCG@10\?"),
        ("nDGC@100", r"did you mean nDCG@100\?"),
        ("P", "cutoff"),
        ("R@0", "cutoff"),
        ("recall", "cutoff"),
        ("", "nDCG"),
        ("R@" + "9" * 5000, "no measure"),
    ],
)
def test_a_measure_that_does_not_exist_is_one_line_with_the_nearest(text, says):
    with pytest.raises(UserError, match=says):
        Measure.parse(text)
