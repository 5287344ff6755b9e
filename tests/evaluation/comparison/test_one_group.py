"""Datasets of one group, with the same labels, are averaged; others are left out."""

from __future__ import annotations

import pytest

import r2med
from r2med import UserError
from r2med.data.dataset_cards import OWN_DATA
from r2med.evaluation.comparison.one_group import not_averaged
from r2med.evaluation.comparison.one_group import of_one_group as group_of
from support.facts import states


def of_one_group(datasets: list[str], named: bool) -> tuple[list[str], list[str]]:
    """Group datasets whose only overlay is called judged."""
    return group_of({name: name.removesuffix("+judged") for name in datasets}, named)


def test_a_plus_in_the_name_of_an_own_dataset_is_not_an_overlay() -> None:
    assert of_one_group(["notes+a", "notes+b"], named=False) == (["notes+a", "notes+b"], [])
    assert of_one_group(["notes+a", "notes+b+judged"], named=True)[1] == []


def test_a_dataset_with_and_without_an_overlay_does_not_count_twice() -> None:
    kept, notices = of_one_group(["demo/Biology", "demo/Biology+judged", "demo/MedQA-Diag"], named=False)
    assert kept == ["demo/Biology", "demo/MedQA-Diag"]
    assert notices == ["demo/Biology+judged is left out, because scores with other labels are not averaged together"]
    with pytest.raises(UserError, match="not averaged together"):
        of_one_group(["mine", "mine+judged"], named=True)
    assert of_one_group(["mine+judged", "mine"], named=False)[0] == ["mine"]


def test_a_group_of_which_some_datasets_have_an_overlay_stays_together() -> None:
    datasets = ["demo/Biology+judged", "demo/MedQA-Diag"]
    assert of_one_group(datasets, named=True) == (datasets, [])
    assert of_one_group(["mine+judged"], named=False) == (["mine+judged"], [])


def test_the_demo_gives_way_to_other_groups() -> None:
    kept, notices = of_one_group(["demo/Biology", "Biology"], named=False)
    assert kept == ["Biology"]
    assert "the demo is left out" in notices[0]


def test_two_own_datasets_with_a_plus_are_compared_together() -> None:
    both = [
        r2med.Dataset.of({"1": "gout"}, {"a": "gout", "b": "flu"}, {"1": {"a": 1}}, name=name)
        for name in ("notes+a", "notes+b")
    ]
    results = r2med.run(["bm25", "bm25(k1=2)"], both, out=None)
    compared = results.compare()
    assert compared.datasets == ["notes+a", "notes+b"]
    assert compared.notices == ()
    assert len(results.averages) == 1


def test_the_notice_of_a_group_that_is_left_out_names_the_flag_and_the_argument():
    states(not_averaged(("demo", ""), ["demo/Biology"]), "data (--data demo)")
    states(not_averaged(("R2MED", ""), ["Biology"]), "data (--data R2MED)")
    states(not_averaged((OWN_DATA, ""), ["mine", "a b"]), "data (--data 'mine,a b')")
