"""The share of a sample in which people leave some items open."""

import numpy as np

from r2med.assessment.review.prediction_powered import bounded_share, share

ITEMS, REVIEWED, DISPUTABLE, SAMPLES = 400, 80, 0.3, 400


def test_the_interval_holds_the_truth_although_disputed_items_are_open() -> None:
    """Three of ten items are disputable and mostly wrong; people tie on half of them. Without them, coverage fails."""
    random = np.random.default_rng(1)
    held = {"bounded": 0, "left out": 0}
    for _ in range(SAMPLES):
        disputable = random.random(ITEMS) < DISPUTABLE
        right = random.random(ITEMS) < np.where(disputable, 0.35, 0.85)
        scores = np.clip(0.5 * right + random.normal(0.3, 0.2, ITEMS), 0, 1)
        seen = random.choice(ITEMS, REVIEWED, replace=False)
        said = np.where(disputable & (random.random(ITEMS) < 0.7), np.nan, right)[seen]
        known = ~np.isnan(said)
        found = {"bounded": bounded_share(scores, seen, said), "left out": share(scores, seen[known], said[known])}
        for name, each in found.items():
            assert each is not None and each.low is not None and each.high is not None
            held[name] += each.low <= right.mean() <= each.high
    assert held["bounded"] >= 0.93 * SAMPLES
    assert held["left out"] < 0.8 * SAMPLES


def test_without_open_items_nothing_changes() -> None:
    scores, seen = np.linspace(0, 1, 40), np.arange(20)
    said = (np.arange(20) % 3 > 0).astype(float)
    assert bounded_share(scores, seen, said) == share(scores, seen, said)
