"""The mimic rate: the share of the first ten passages that argue for another answer."""

from __future__ import annotations

import pytest

from r2med import UserError, score
from r2med.data.runs.run import Run
from r2med.evaluation.measure import Measure
from r2med.evaluation.measure.dataset_scores import with_mimic_rate
from r2med.evaluation.measure.measures import MIMIC, MIMIC_LABELLED, recorded_measure

RUN = Run.of({"q1": {f"d{n}": 20.0 - n for n in range(15)}, "q2": {"d0": 2.0, "d1": 1.0}, "q3": {"d3": 1.0}})
QRELS = {"q1": {"d2": 1}, "q2": {"d0": 1}, "q3": {"d1": 1}, "q4": {"d1": 1}}
MIMICS = {"q1": {"d1": 1, "d3": 1, "d5": 0, "d12": 1}, "q2": {"d1": 1, "d9": 1}, "other": {"d1": 1}}


def test_it_is_a_share_of_the_first_ten_and_passages_without_a_label_do_not_count() -> None:
    scores = with_mimic_rate(score(QRELS, RUN, ["nDCG@10"]), MIMICS, RUN)
    assert scores.values[MIMIC].tolist() == [0.2, 0.1, 0.0, 0.0]
    assert scores.values[MIMIC_LABELLED].tolist() == [0.3, 0.1, 0.0, 0.0]
    assert scores.mean["Mimic@10"] == pytest.approx(0.075)
    assert scores.queries == tuple(QRELS), "labels of other queries are ignored"


def test_without_labels_the_scores_are_as_they_were() -> None:
    scores = score(QRELS, RUN, ["nDCG@10"])
    assert with_mimic_rate(scores, {}, RUN) is scores


def test_the_name_can_be_typed_and_lower_is_better() -> None:
    assert Measure.parse("mimic@10") == MIMIC
    assert MIMIC.lower_is_better
    assert not MIMIC_LABELLED.lower_is_better
    assert not Measure.parse("nDCG@10").lower_is_better
    assert recorded_measure("mimic@10") == "Mimic@10"
    with pytest.raises(UserError, match="needs a cutoff"):
        Measure.parse("Mimic")
    with pytest.raises(UserError, match="needs labels that qrels do not have: r2med compare --overlay"):
        score(QRELS, RUN, ["Mimic@10"])
