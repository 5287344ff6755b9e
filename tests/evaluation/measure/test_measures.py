"""A measure is a value: it prints as it is typed and parses back. Means over datasets stand beside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.data.dataset_cards import cards
from r2med.evaluation.measure import Measure
from r2med.evaluation.measure.measures import group_means
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


HOMES = dict.fromkeys(VALUES, "R2MED")


def test_the_average_of_a_group_weighs_every_dataset_the_same():
    assert group_means(VALUES, cards(), HOMES)["average"] == pytest.approx(15.125)


def test_the_benchmark_is_also_averaged_without_biology_and_by_task():
    means = group_means(VALUES, cards(), HOMES)
    assert means["without Biology"] == pytest.approx((121.0 - 19.19) / 7)
    assert means["Q&A reference"] == pytest.approx((19.19 + 21.55 + 19.68) / 3)
    assert means["clinical evidence"] == pytest.approx((0.66 + 2.55 + 23.69) / 3)
    assert means["clinical case"] == pytest.approx((21.66 + 12.02) / 2)


def test_datasets_without_a_card_are_only_averaged():
    assert group_means({"mine": 0.5, "yours": 0.7}, {"mine": None}, {}) == {"average": pytest.approx(0.6)}


def test_datasets_of_several_groups_are_never_averaged_together():
    own = cards()["MedQA-Diag"].model_copy(update={"name": "Mine", "groups": ()})
    homes = {**HOMES, "Mine": "own data", "SciFact": "medical", "NFCorpus": "medical"}
    means = group_means({**VALUES, "Mine": 99.0, "SciFact": 60.0, "NFCorpus": 40.0}, {**cards(), "Mine": own}, homes)
    assert "average" not in means
    assert (means["R2MED"], means["own data"], means["medical"]) == (pytest.approx(15.125), 99.0, 50.0)
    assert means["clinical evidence"] == pytest.approx((0.66 + 2.55 + 23.69) / 3)
    assert means["without Biology"] == pytest.approx((121.0 - 19.19) / 7)
