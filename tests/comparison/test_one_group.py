"""Datasets of one group, with the same labels, are averaged; others are left out."""

from __future__ import annotations

import pytest

from r2med import UserError
from r2med.comparison.one_group import of_one_group


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
