"""Measures of aspects equal a plain computation that follows the papers line by line and shares no code."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import pytest

from r2med import score
from r2med.data.dataset import QueryAspect
from r2med.evaluation.measure import Measure
from r2med.foundation.core.errors import UserError

HALF = Fraction(1, 2)
QRELS = {"q": {"a": 1}}


def plain_ranking(scores: dict[str, int]) -> list[str]:
    """Best first; of equal scores the highest id first, as in trec_eval and ndeval's traditional order."""
    return sorted(sorted(scores, reverse=True), key=lambda document: -scores[document])


def plain_gains(ranking: list[str], aspects: dict[str, QueryAspect], weighted: bool) -> list[Fraction]:
    """The gain of each document: over its aspects, weight times one half for each earlier document of the aspect."""
    gains = []
    for place, document in enumerate(ranking):
        gain = Fraction(0)
        for aspect in aspects.values():
            if document in aspect.documents:
                seen = sum(earlier in aspect.documents for earlier in ranking[:place])
                gain += (Fraction(aspect.weight) if weighted else 1) * HALF**seen
        gains.append(gain)
    return gains


def plain_ideal(aspects: dict[str, QueryAspect], weighted: bool) -> list[str]:
    """Append the document with the largest gain, of equal gains the one with the highest id, until none is left."""
    left = sorted({document for aspect in aspects.values() for document in aspect.documents}, reverse=True)
    ideal: list[str] = []
    while left:
        best = max(left, key=lambda document: plain_gains([*ideal, document], aspects, weighted)[-1])
        ideal.append(best)
        left.remove(best)
    return ideal


def plain_dcg(gains: list[Fraction], cutoff: int) -> float:
    return sum(float(gain) / math.log2(place + 2) for place, gain in enumerate(gains[:cutoff]))


def plain_ndcg(ranking: list[str], aspects: dict[str, QueryAspect], cutoff: int, weighted: bool) -> float:
    best = plain_dcg(plain_gains(plain_ideal(aspects, weighted), aspects, weighted), cutoff)
    return plain_dcg(plain_gains(ranking, aspects, weighted), cutoff) / best if best else 0.0


def plain_recall(ranking: list[str], aspects: dict[str, QueryAspect], cutoff: int) -> float:
    total = sum(Fraction(aspect.weight) for aspect in aspects.values())
    found = sum(Fraction(a.weight) for a in aspects.values() if set(a.documents) & set(ranking[:cutoff]))
    return float(found / total) if total else 0.0


def random_case(number: int) -> tuple[dict[str, dict[str, QueryAspect]], dict[str, dict[str, int]]]:
    """Return aspects and a run of four queries: one without aspects, one that the run lacks."""
    draw = random.Random(number)
    documents = [f"d{each}" for each in range(14)]
    aspects = {
        f"q{query}": {
            f"a{each}": QueryAspect(draw.choice([1, 2, 3, 0.5]), tuple(draw.sample(documents, draw.randint(1, 5))))
            for each in range(draw.randint(1, 5))
        }
        for query in range(3)
    }
    ranked = {query: draw.sample([*documents, "x1", "x2"], draw.randint(1, 16)) for query in ("q0", "q1", "q3")}
    return aspects, {query: {each: draw.randint(0, 4) for each in some} for query, some in ranked.items()}


@pytest.mark.parametrize("start", range(0, 200, 50))
def test_measures_of_aspects_equal_a_plain_computation_on_random_runs(start: int) -> None:
    for number in range(start, start + 50):
        aspects, run = random_case(number)
        queries = [*aspects, "q3"]
        cutoff = 1 + number % 12
        names = [f"alpha-nDCG@{cutoff}", f"weighted-alpha-nDCG@{cutoff}", f"A-Recall@{cutoff}"]
        scores = score({key: {} for key in queries}, run, names, aspects=aspects)
        for query in queries:
            ranking, own = plain_ranking(run.get(query, {})), aspects.get(query, {})
            expected = [
                plain_ndcg(ranking, own, cutoff, weighted=False),
                plain_ndcg(ranking, own, cutoff, weighted=True),
                plain_recall(ranking, own, cutoff),
            ]
            assert [scores.per_query[query][name] for name in names] == pytest.approx(expected, abs=1e-12), number


def test_with_one_aspect_for_each_document_the_ideal_takes_the_best_aspect_at_every_rank() -> None:
    # BRIGHT-Pro states the ideal by aspects: 3/4, then 1/4 or 3/8, and so on.
    aspects = {"q": {"main": QueryAspect(3, ("a", "b", "c")), "side": QueryAspect(1, ("d",))}}
    run = {"q": {"d": 2.0, "a": 1.0}}
    gained = 0.25 / 1 + 0.75 / math.log2(3)
    ideal = 0.75 / 1 + 0.375 / math.log2(3) + 0.25 / math.log2(4) + 0.1875 / math.log2(5)
    scores = score(QRELS, run, aspects=aspects)
    assert scores["weighted-alpha-nDCG@25"] == pytest.approx(gained / ideal)
    assert scores["A-Recall@25"] == 1.0
    assert score(QRELS, run, ["A-Recall@1"], aspects=aspects)["A-Recall@1"] == 0.25


def test_alpha_ndcg_ignores_weights_and_rewards_a_new_aspect() -> None:
    aspects = {"q": {"x": QueryAspect(3, ("a", "b")), "y": QueryAspect(1, ("c",))}}
    repeated, varied = ({"q": dict(zip(order, (3.0, 2.0, 1.0), strict=True))} for order in ("abc", "acb"))
    assert score(QRELS, varied, aspects=aspects)["alpha-nDCG@10"] == 1.0
    assert score(QRELS, repeated, aspects=aspects)["alpha-nDCG@10"] < 1.0


def test_a_query_without_aspects_and_a_query_without_a_ranking_count_zero() -> None:
    aspects = {"q": {"x": QueryAspect(1, ("a",))}, "lost": {"x": QueryAspect(1, ("a",))}}
    run = {"q": {"a": 1.0}, "bare": {"a": 1.0}}
    scores = score({key: {"a": 1} for key in ("q", "lost", "bare")}, run, aspects=aspects)
    assert [scores.per_query[query]["A-Recall@10"] for query in scores.queries] == [1.0, 0.0, 0.0]


def test_measures_of_aspects_parse_and_need_a_cutoff_and_aspects() -> None:
    assert str(Measure.parse("Weighted-Alpha-nDCG@25")) == "weighted-alpha-nDCG@25"
    assert str(Measure.parse("a-recall@10")) == "A-Recall@10"
    with pytest.raises(UserError, match="needs a cutoff"):
        Measure.parse("alpha-nDCG")
    with pytest.raises(UserError, match=r"A-Recall@10 needs the aspects"):
        score({"q": {"a": 1}}, {"q": {"a": 1.0}}, ["A-Recall@10"])


def test_score_takes_aspects_of_a_dataset_or_of_a_file(tmp_path: Path) -> None:
    aspects = {"q": {"x": QueryAspect(1, ("a",)), "y": QueryAspect(3, ("b",))}}
    file = tmp_path / "aspects.jsonl"
    rows = [
        {"query": "q", "aspect": name, "weight": a.weight, "documents": a.documents} for name, a in aspects["q"].items()
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    qrels, run = {"q": {"a": 1, "b": 1}, "other": {"a": 1}}, {"q": {"b": 1.0}}
    scores = score(qrels, run, aspects=aspects)
    assert (scores["A-Recall@10"], scores["nDCG@10"]) == (0.375, score(qrels, run)["nDCG@10"])
    assert score(qrels, run, aspects=file).mean == scores.mean
    with pytest.raises(UserError, match="no such file of aspects"):
        score(qrels, run, aspects=tmp_path / "none.jsonl")
