"""Slices cut the queries once each, in an order that a reader expects."""

from __future__ import annotations

import numpy as np
import pytest

from r2med.evaluation.measure.slices import KINDS, SliceFacts, slices
from r2med.foundation.core.errors import UserError

FACTS = {
    "one": SliceFacts("task x", "exam", np.array([10, 20, 30]), np.array([1, 2, 3]), ("Nervous", "", "Digestive")),
    "two": SliceFacts("task x", "", np.array([40, 50, 60]), np.array([4, 5, 19]), ("Nervous", "Nervous", "Skeletal")),
}
VALUES = {"one": np.array([[1.0, 2.0, 3.0]]), "two": np.array([[4.0, 5.0, 6.0]])}


@pytest.mark.parametrize("kind", KINDS)
def test_every_query_is_in_one_slice(kind: str) -> None:
    cut = np.hstack([rows for each in slices(kind, FACTS) for rows in each.cut(VALUES).values()])
    assert sorted(cut[0].tolist()) == [1, 2, 3, 4, 5, 6]


def test_slices_are_named_and_ordered() -> None:
    assert [each.label for each in slices("length", FACTS)] == ["up to 26 words", "27 to 43 words", "over 43 words"]
    assert [each.label for each in slices("body-system", FACTS)] == ["Digestive", "Nervous", "Skeletal", "not stated"]
    assert [(each.label, len(each)) for each in slices("positives", FACTS)] == [
        ("1 relevant document", 1),
        ("2 relevant documents", 1),
        ("3 or 4 relevant documents", 2),
        ("5 or more relevant documents", 2),
    ]


def test_whole_datasets_are_averaged_as_datasets_and_single_queries_as_queries() -> None:
    assert [list(each.cut(VALUES)) for each in slices("task", FACTS)] == [["one", "two"]]
    nervous = slices("body-system", FACTS)[1]
    assert nervous.cut(VALUES)["Nervous"].tolist() == [[1.0, 4.0, 5.0]]


def test_a_kind_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean body-system"):
        slices("body_system", FACTS)
