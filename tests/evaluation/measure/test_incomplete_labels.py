"""Scores under other assumptions about documents without a label."""

import numpy as np
import pytest

from r2med.evaluation.measure.incomplete_labels import (
    bpref,
    condensed,
    headline,
    judged_share,
    with_unjudged_relevant,
)

QRELS = {"q": {"a": 1, "b": 0}}
LISTS = {"q": ["x", "b", "a"]}


def test_unjudged_documents_bound_a_score_from_both_sides() -> None:
    low, high = headline(QRELS, LISTS), headline(with_unjudged_relevant(QRELS, LISTS), LISTS)
    best = 1 + 1 / np.log2(3)
    assert low == pytest.approx([50.0])
    assert high == pytest.approx([100 * (1 + 1 / 2) / best])


def test_judged_only_measures_leave_out_what_nobody_judged() -> None:
    assert headline(QRELS, condensed(QRELS, LISTS)) == pytest.approx([100 / np.log2(3)])
    assert bpref(QRELS, LISTS).tolist() == [0.0]
    assert bpref(QRELS, {"q": ["a", "b"]}).tolist() == [100.0]
    assert judged_share(QRELS, LISTS) == pytest.approx([200 / 3])


@pytest.mark.parametrize(
    ("ranking", "value"),
    [
        (["a", "c", "b", "d"], 100.0),
        (["b", "a", "c", "d"], 50.0),
        (["a", "b", "x", "c"], 75.0),
        (["b", "d", "a", "c"], 0.0),
        (["a"], 50.0),
        ([], 0.0),
    ],
)
def test_bpref_counts_the_irrelevant_documents_above_each_relevant_one(ranking: list[str], value: float) -> None:
    """Buckley and Voorhees, 2004, with min(R, N) in the denominator, as trec_eval computes it."""
    assert bpref({"q": {"a": 1, "c": 2, "b": 0, "d": 0}}, {"q": ranking}).tolist() == [value]


def test_bpref_without_irrelevant_or_relevant_documents_is_recall_or_0() -> None:
    assert bpref({"q": {"a": 1, "b": 1}}, {"q": ["x", "a"]}).tolist() == [50.0]
    assert bpref({"q": {"a": 0}}, {"q": ["a"]}).tolist() == [0.0]


def test_only_unjudged_documents_of_the_first_ten_become_relevant() -> None:
    ranking = [f"d{number}" for number in range(12)]
    assert with_unjudged_relevant({"q": {"d3": 0}}, {"q": ranking})["q"] == {f"d{n}": int(n != 3) for n in range(10)}


def test_an_empty_ranking_has_no_judged_share() -> None:
    assert judged_share({"q": {"a": 1}, "p": {"a": 1}}, {"q": [], "p": ["a"]}).tolist() == [0.0, 100.0]
