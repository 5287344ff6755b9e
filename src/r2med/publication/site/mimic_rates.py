"""The mimic rates of systems for the leaderboard: how many of their first ten passages argue for another answer."""

from __future__ import annotations

from r2med.evaluation.comparison.comparison import intervals
from r2med.evaluation.measure.measures import MIMIC, MIMIC_LABELLED
from r2med.evaluation.records.collection import RecordCollection


def mimic_rates(collection: RecordCollection) -> dict[str, list[float | None]]:
    """Return system -> its rate, the interval of the rate and the share of labelled passages, between 0 and 1.

    They are means over the datasets with labels of mimics. A system without a record on one of them is left out, and
    without such datasets the result is empty.
    """
    labelled = collection.with_measure(str(MIMIC))
    if not any(str(MIMIC) in kept.record.mean for kept in labelled):
        return {}
    rates = {}
    for system, standing in intervals(labelled, str(MIMIC)).items():
        if standing.mean is not None:
            shares = [record.mean[str(MIMIC_LABELLED)] for record in labelled.records(system).values()]
            points = (standing.mean.value, standing.mean.low, standing.mean.high)
            rate = [None if each is None else round(each / 100, 6) for each in points]
            rates[system] = [*rate, round(sum(shares) / len(shares), 6)]
    return rates
