"""Scores that people's labels for a random sample of queries correct."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from r2med import UserError, load, run
from r2med.data.given_data import with_overlays
from r2med.data.overlays import Overlay, OverlayLabel, random_order
from r2med.evaluation.comparison.corrected_means import CorrectedMean, ReviewedQueries, corrected_mean
from r2med.evaluation.comparison.corrected_scores import (
    CorrectedScores,
    corrected_scores,
    estimates_page,
    reviewed_queries,
)
from r2med.evaluation.records.collection import collect
from r2med.foundation.pages.markdown import page_markdown

NAME = "demo/Biology"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    run(["bm25", "bm25(k1=0.1, b=0)"], NAME, out=folder)
    return folder


def labels(grade: int, queries: list[str], documents: list[str], **who: str) -> tuple[OverlayLabel, ...]:
    lines = [{"dataset": NAME, "query": q, "document": d, "grade": grade, **who} for q in queries for d in documents]
    return tuple(map(OverlayLabel.model_validate, lines))


def test_estimates_equal_those_of_plain_values(results: Path) -> None:
    dataset = load(NAME)
    queries = random_order(NAME, (query.id for query in dataset.queries))
    documents = [document for document, _ in dataset.corpus][:12]
    judge = Overlay("judge", labels(1, queries, documents, judge="j"))
    people = Overlay("people", labels(0, queries[:5], documents, reviewer="R1", drawn="random"))
    collection = collect(results=results)
    assert reviewed_queries([judge, people], NAME) == set(queries[:5])
    found = corrected_scores(collection, [judge, people], {NAME: dataset})

    order = list(dataset.qrels)
    rows = []
    for overlays in ([judge], [judge, people]):
        record = run("bm25", with_overlays(dataset, overlays), out=None).records[0]
        rows.append(np.array([100 * record.per_query[query]["nDCG@10"] for query in order]))
    at = np.array([order.index(query) for query in queries[:5]])
    expected = corrected_mean([ReviewedQueries(rows[0], np.sort(at), rows[1][np.sort(at)])])
    assert expected is not None
    assert found.scores["bm25"] == expected
    (pair,) = found.differences
    better, other = (found.scores[system].value for system in pair)
    assert better >= other


def test_differences_have_a_sign_and_a_verdict() -> None:
    scores = {name: CorrectedMean(value, value - 5, value + 5, 300, 40, 0.5) for name, value in (("a", 66), ("b", 64))}
    pairs = {("a", "b"): CorrectedMean(2, -0.9, 5), ("b", "c"): CorrectedMean(4, 0.5, 7), ("a", "c"): CorrectedMean(6)}
    text = page_markdown(estimates_page(CorrectedScores("nDCG@10", scores, pairs)))
    for row in (
        "| a | 66.00 | 61.00 to 71.00 |",
        "| a minus b | +2.00 | −0.90 to +5.00 | cannot be distinguished |",
        "| b minus c | +4.00 | +0.50 to +7.00 | can be distinguished |",
        "| a minus c | +6.00 | – | too few reviewed queries |",
    ):
        assert row in text


def test_hand_picked_queries_do_not_count_as_a_random_sample(results: Path) -> None:
    """The random order follows from the ids, so a sample that says it is random is not believed."""
    dataset = load(NAME)
    queries = random_order(NAME, (query.id for query in dataset.queries))
    documents = [document for document, _ in dataset.corpus][:4]
    judge = Overlay("judge", labels(1, queries, documents, judge="j"))
    picked = Overlay("people", labels(0, queries[1:], documents, reviewer="R1", drawn="random"))
    assert reviewed_queries([judge, picked], NAME) == set()
    with pytest.raises(UserError, match=r"pool of 0 randomly drawn .* \(7 others are labelled, but the random order"):
        corrected_scores(collect(results=results), [judge, picked], {NAME: dataset})
    beside = Overlay("people", labels(0, [*queries[:3], queries[5]], documents, reviewer="R1", drawn="random"))
    found = corrected_scores(collect(results=results), [judge, beside], {NAME: dataset})
    assert found.scores["bm25"].reviewed == 3
    assert found.unused == {NAME: 1}
    assert "1 further queries are completely labelled and do not count" in page_markdown(estimates_page(found))


def test_a_half_labelled_pool_does_not_count(results: Path) -> None:
    dataset = load(NAME)
    queries = [query.id for query in dataset.queries]
    documents = [document for document, _ in dataset.corpus][:4]
    judge = Overlay("judge", labels(1, queries, documents, judge="j"))
    half = Overlay("people", labels(0, queries, documents[:3], reviewer="R1", drawn="random"))
    chosen = Overlay("people", labels(0, queries, documents, reviewer="R1", drawn="influence"))
    assert reviewed_queries([judge, half], NAME) == set()
    assert reviewed_queries([judge, chosen], NAME) == set(), "they were not drawn at random"
    with pytest.raises(UserError, match="whole pool of 0 randomly drawn queries"):
        corrected_scores(collect(results=results), [judge, half], {NAME: dataset})


def test_a_judge_that_was_asked_twice_has_the_mean_of_its_runs(results: Path) -> None:
    dataset = load(NAME)
    queries = random_order(NAME, (query.id for query in dataset.queries))
    documents = [document for document, _ in dataset.corpus][:12]
    runs = [labels(1, queries, documents, judge="j"), labels(0, queries, documents, judge="j")]
    again = tuple(label.model_copy(update={"repeat": 1}) for label in runs[1])
    people = Overlay("people", labels(0, queries[:5], documents, reviewer="R1", drawn="random"))
    collection = collect(results=results)
    singles = [
        corrected_scores(collection, [Overlay("judge", run), people], {NAME: dataset}).scores["bm25"] for run in runs
    ]
    both = corrected_scores(collection, [Overlay("judge", (*runs[0], *again)), people], {NAME: dataset})
    assert both.judge_runs == 2
    assert both.judge_spread["bm25"] == pytest.approx(np.std([each.value for each in singles], ddof=1))
    assert "asked 2 times" in page_markdown(estimates_page(both))
    once = corrected_scores(collection, [Overlay("judge", runs[0]), people], {NAME: dataset})
    assert (once.judge_runs, once.judge_spread) == (1, {})
