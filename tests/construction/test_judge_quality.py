"""Judges against each other and against people."""

import itertools

import numpy as np
import pytest

from r2med.construction.items import Judgement
from r2med.construction.judge_quality import AcceptedShare, judge_confusions, judge_ratings
from r2med.evaluation.measure.coefficients import cohen_kappa

SCORES = {"positive": 5, "discarded": 3, "negative": 0}
VERDICTS = {"a": "accept", "r": "reject"}


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


def test_a_judge_is_counted_by_its_own_labels_and_controls_do_not_count():
    first, decisions = judged("first", *SAMPLE)
    second = [each.model_copy(update={"judge": "second", "relevance": 5, "support": 5}) for each in first]
    control = Judgement(question="q", chunk="x", judge="first", relevance=5, support=5, control="random")
    confusions = judge_confusions([*second, *first, control], {**decisions, ("q", "x"): "reject"})
    assert [*confusions] == ["first", "second"]
    assert confusions["first"] == {
        ("positive", "accept"): 4, ("positive", "reject"): 1, ("discarded", "accept"): 2, ("discarded", "reject"): 3,
        ("negative", "accept"): 1, ("negative", "reject"): 4,
    }  # fmt: skip
    assert confusions["second"] == {("positive", "accept"): 7, ("positive", "reject"): 8}


def test_the_accepted_share_has_wilsons_interval_and_leaves_out_what_is_undecided():
    share = AcceptedShare(items=40, accepted=8, rejected=2, undecided=3)
    assert share.reviewed == 13
    assert (share.share.value, share.share.low, share.share.high) == pytest.approx((0.8, 0.4902, 0.9433), abs=1e-4)
    assert AcceptedShare(items=40, accepted=0, rejected=0, undecided=3).share is None


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
