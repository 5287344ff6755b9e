"""Judges against each other and against people, and label recall, as estimates for all candidates."""

import itertools

import numpy as np
import pytest

from r2med.construction.items import Judgement
from r2med.construction.judge_quality import judge_confusions, judge_ratings, label_recall
from r2med.construction.labels import labels
from r2med.evaluation.measure.coefficients import cohen_kappa
from r2med.foundation.pages.estimate import Estimate

SCORES = {"positive": 5, "discarded": 3, "negative": 0}
VERDICTS = {"a": "accept", "r": "reject", "u": "unsure"}


def judged(judge: str, *groups: tuple[str, int, str]) -> tuple[list[Judgement], dict]:
    """Return judgements and decisions of groups of candidates: their label, their number, the verdicts on the first."""
    judgements, decisions = [], {}
    numbers = itertools.count()
    for label, size, verdicts in groups:
        for place in range(size):
            pair = "q", f"c{next(numbers)}"
            score = SCORES[label]
            judgements.append(Judgement(question="q", chunk=pair[1], judge=judge, relevance=score, support=score))
            if place < len(verdicts):
                decisions[pair] = VERDICTS[verdicts[place]]
    return judgements, decisions


SAMPLE = ("positive", 40, "aaaar"), ("discarded", 20, "aarrr"), ("negative", 400, "rrrra")


def test_rates_are_those_of_scikit_learn_with_each_review_weighted_by_its_label():
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    [found] = judge_confusions(*judged("gpt4", *SAMPLE))
    accepted = [1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    positive = [1] * 5 + [0] * 10
    weights = [8] * 5 + [4] * 5 + [80] * 5
    recall = metrics.recall_score(accepted, positive, sample_weight=weights)
    assert found.rates.sensitivity.value == pytest.approx(recall)
    assert found.rates.specificity.value == pytest.approx(
        metrics.recall_score(accepted, positive, pos_label=0, sample_weight=weights)
    )
    assert found.rates.precision.value == pytest.approx(
        metrics.precision_score(accepted, positive, sample_weight=weights)
    )
    assert found.rates.sensitivity.value == pytest.approx(
        32 / (32 + 8 + 80)
    )  # not 4 of 7, as the sample alone would say
    assert found.reviewed == 15 and found.counts["negative", "accept"] == 1
    assert 0 <= found.rates.sensitivity.low < recall < found.rates.sensitivity.high <= 1


def test_rates_of_few_reviews_have_no_interval_and_missing_reviews_no_rate():
    [few] = judge_confusions(*judged("gpt4", ("positive", 9, "aar"), ("negative", 9, "rr")))
    assert few.rates.sensitivity.value == 1 and few.rates.sensitivity.low is None
    [none] = judge_confusions(*judged("gpt4", ("positive", 9, "aar"), ("negative", 9, "")))
    assert (none.rates.sensitivity, none.rates.specificity) == (
        None,
        None,
    ) and none.rates.precision.value == pytest.approx(2 / 3)
    [undecided] = judge_confusions(*judged("gpt4", ("positive", 9, "u")))
    assert (undecided.rates.precision.value, undecided.rates.precision.most) == (0, 1)
    assert judge_confusions(*judged("gpt4", ("positive", 9, ""))) == []


def test_open_candidates_make_rates_ranges_that_hold_every_way_to_decide_them():
    parts = ("positive", 40, "a" * 12 + "r" * 4 + "u" * 4), ("negative", 40, "a" * 2 + "r" * 16 + "u" * 2)
    [found] = judge_confusions(*judged("gpt4", *parts))
    for accept_positive in "ar":
        for accept_other in "ar":
            decided = [
                (name, items, said.replace("u", letter))
                for (name, items, said), letter in zip(parts, (accept_positive, accept_other), strict=True)
            ]
            [each] = judge_confusions(*judged("gpt4", *decided))
            for rate, wide in (
                (each.rates.sensitivity, found.rates.sensitivity),
                (each.rates.precision, found.rates.precision),
                (each.rates.specificity, found.rates.specificity),
            ):
                assert wide.value - 1e-9 <= rate.value <= wide.most + 1e-9
                assert wide.low - 1e-9 <= rate.low and rate.high <= wide.high + 1e-9


def test_a_judge_is_measured_by_its_own_labels_and_controls_do_not_count():
    first, decisions = judged("first", ("positive", 10, "aaaaaaaarr"), ("negative", 10, "rrrrrrrrrr"))
    second = [each.model_copy(update={"judge": "second", "relevance": 5, "support": 5}) for each in first]
    control = Judgement(question="q", chunk="x", judge="first", relevance=5, support=5, control="random")
    one, two = judge_confusions([*first, *second, control], {**decisions, ("q", "x"): "reject"})
    assert (one.judge, one.rates.sensitivity.value) == ("first", 1)
    assert one.rates.specificity.value == pytest.approx(10 / 12)
    assert (two.rates.sensitivity.value, two.rates.specificity.value) == (1, 0)
    assert two.rates.precision == Estimate(0.4, 0.4, 0.4)  # people reviewed all


def test_label_recall_counts_what_people_would_accept_among_other_labels():
    judgements, decisions = judged("gpt4", *SAMPLE)
    found = label_recall(labels(judgements), decisions)
    # Three accepted candidates become positive. Of the others, 8 + 80 - 3 are still missed.
    assert found.value == pytest.approx((32 + 3) / (32 + 8 + 80))
    assert found.low < found.value < found.high
    assert label_recall(labels(judgements), {}) is None
    everything, decided = judged("gpt4", ("positive", 6, "aaaaar"), ("negative", 6, "arrrrr"))
    assert label_recall(labels(everything), decided).bounds == (1, 1)  # people corrected all


def test_agreement_of_judges_is_that_of_their_scores():
    random = np.random.default_rng(0)
    scores = random.integers(0, 6, (40, 3))
    judgements = [
        Judgement(question="q", chunk=str(unit), judge=f"j{judge}", relevance=score, support=5 - score)
        for unit, row in enumerate(scores.tolist())
        for judge, score in enumerate(row)
        if (unit, judge) != (0, 0)
    ]
    found = judge_ratings(judgements)
    assert list(found) == ["relevance", "support", "label"]
    every, *pairs = found["relevance"].agreements()
    assert (every.raters, every.items, every.kappa) == (("j0", "j1", "j2"), 40, None)
    assert [pair.raters for pair in pairs] == [("j0", "j1"), ("j0", "j2"), ("j1", "j2")]
    assert [pair.items for pair in pairs] == [39, 39, 40]
    expected = cohen_kappa(scores[:, 1:].astype(float), "quadratic").value
    assert pairs[2].kappa.value == pytest.approx(expected)
    assert found["support"].agreement("j1", "j2").kappa.value == pytest.approx(expected)
    assert judge_ratings([each for each in judgements if each.judge == "j0"])["label"].agreements() == []
