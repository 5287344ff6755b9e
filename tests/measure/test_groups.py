"""Means over datasets."""

import pytest

from r2med.data.dataset_cards import cards
from r2med.measure.measures import group_means

VALUES = dict(
    zip(
        [
            "Biology",
            "Bioinformatics",
            "Medical-Sciences",
            "MedXpertQA-Exam",
            "MedQA-Diag",
            "PMC-Treatment",
            "PMC-Clinical",
            "IIYi-Clinical",
        ],
        [19.19, 21.55, 19.68, 0.66, 2.55, 23.69, 21.66, 12.02],
        strict=True,
    )
)


def test_the_average_of_a_group_weighs_every_dataset_the_same():
    assert group_means(VALUES, cards())["average"] == pytest.approx(15.125)


def test_the_benchmark_is_also_averaged_without_biology_and_by_task():
    means = group_means(VALUES, cards())
    assert means["without Biology"] == pytest.approx((121.0 - 19.19) / 7)
    assert means["Q&A reference"] == pytest.approx((19.19 + 21.55 + 19.68) / 3)
    assert means["clinical evidence"] == pytest.approx((0.66 + 2.55 + 23.69) / 3)
    assert means["clinical case"] == pytest.approx((21.66 + 12.02) / 2)


def test_datasets_without_a_card_are_only_averaged():
    assert group_means({"mine": 0.5, "yours": 0.7}, {"mine": None}) == {"average": pytest.approx(0.6)}


def test_a_dataset_of_ones_own_does_not_change_the_averages_of_the_benchmark():
    own = cards()["MedQA-Diag"].model_copy(update={"name": "Mine", "groups": ()})
    means = group_means({**VALUES, "Mine": 99.0}, {**cards(), "Mine": own})
    assert means["average"] == pytest.approx((121.0 + 99.0) / 9)
    assert means["R2MED"] == pytest.approx(15.125)
    assert means["clinical evidence"] == pytest.approx((0.66 + 2.55 + 23.69) / 3)
    assert means["without Biology"] == pytest.approx((121.0 - 19.19) / 7)
