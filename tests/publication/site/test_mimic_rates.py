"""The mimic rates on the leaderboard."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from r2med.evaluation.comparison.standings import intervals
from r2med.evaluation.records.record import Record
from r2med.publication.site.leaderboard import mimic_rates, site_value
from support.records import collection, record


def rated(system: str, dataset: str, rates: Sequence[float], labelled: float) -> Record:
    made = record(system, dataset, [0.5] * len(rates))
    per_query = {
        query: {**made.per_query[query], "Mimic@10": rate, "MimicLabelled@10": labelled}
        for query, rate in zip(made.per_query, rates, strict=True)
    }
    mean = {**made.mean, "Mimic@10": sum(rates) / len(rates), "MimicLabelled@10": labelled}
    return made.model_copy(update={"mean": mean, "per_query": per_query})


RATED = [
    rated("a", "Biology", [0.1, 0.3] * 10, 1.0),
    rated("a", "PMC-Clinical", [0.5, 0.7] * 10, 0.5),
    rated("b", "Biology", [0.4] * 20, 0.9),
]
UNRATED = [record("a", "MedQA-Diag", [0.5] * 20), record("b", "MedQA-Diag", [0.4] * 20)]


def test_rates_are_means_over_the_datasets_with_labels() -> None:
    found = mimic_rates(collection([*RATED, *UNRATED]))
    assert list(found) == ["a"], "b has no record on PMC-Clinical"
    rate = found["a"]
    assert (rate["value"], rate["labelled"]) == (pytest.approx(0.4), pytest.approx(0.75))
    mean = intervals(collection(RATED), "Mimic@10")["a"].mean
    assert mean is not None
    assert mean.low is not None
    assert mean.high is not None
    assert rate["low"] == pytest.approx(mean.low / 100, abs=1e-6)
    assert rate["high"] == pytest.approx(mean.high / 100, abs=1e-6)


def test_without_labels_there_are_no_rates() -> None:
    assert mimic_rates(collection(UNRATED)) == {}
    assert all(system["mimics"] == [None] for system in site_value(collection(UNRATED))["systems"])
    (a,) = (each for each in site_value(collection([*RATED, *UNRATED]))["systems"] if each["name"] == "a")
    assert a["mimics"][0]["value"] == pytest.approx(0.4)
