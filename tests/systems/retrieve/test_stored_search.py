"""Queries searched apart: what their parts find is added up, every search is kept, costs add up."""

import random
import statistics

import numpy as np
import pytest

from r2med.data import Corpus, Query
from r2med.data.runs.run import Run
from r2med.extend import Stage
from r2med.foundation.core.cost import Cost
from r2med.foundation.runtime.runtime import Runtime
from r2med.systems.retrieve.fused_rankings import METHODS
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from r2med.systems.retrieve.stored_search import stored_search
from support.by_day import some_by_day
from support.datasets import dataset_of
from support.facts import error_states
from support.retrievers import ScriptedRetriever

IDS = [f"d{number:02}" for number in range(30)]
SMALL = dataset_of(Corpus.of((name, name) for name in IDS))


class ByText(ScriptedRetriever):
    """Finds for each text what it is told to."""

    def __init__(self, found):
        super().__init__("by text", found)

    def search(self, dataset, queries, k, runtime):
        self.searches.append([query.query.text for query in queries])
        hits = []
        for query in queries:
            scores = self.found.get(query.query.text, {})
            best = sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)[:k]
            rows = SMALL.corpus.rows([document for document, _ in best])
            hits.append((rows, np.array([score for _, score in best], dtype=np.float32)))
        run = Run.ranked([query.query.id for query in queries], hits, SMALL.corpus)
        return Searched(run, Cost(seconds=1.0, tokens=2), Cost(seconds=5.0))


def apart(name, texts, weights, method, excluded=()):
    query = Query(name, f"original {name}", excluded=excluded)
    parts = [
        (SearchQuery(Query(name, text, excluded=excluded)), weight) for text, weight in zip(texts, weights, strict=True)
    ]
    return SearchQuery(query, tuple(texts), parts=tuple(parts), fuse=method)


def worth(scores, method):
    """What documents are worth, computed without arrays from {document: score}."""
    ranking = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    values = [scores[document] for document in ranking]
    if method == "rrf":
        return {document: 1 / (60 + rank) for rank, document in enumerate(ranking, 1)}
    if method == "sum" or not values:
        return dict(scores)
    low, high = min(values), max(values)
    if low == high:
        return dict.fromkeys(ranking, 1.0)
    if method == "minmax":
        return {document: (score - low) / (high - low) for document, score in scores.items()}
    return {document: (score - low) / statistics.pstdev(values) for document, score in scores.items()}


def plainly_fused(found, query, k):
    added = {}
    for part, weight in query.parts or ((query, 1.0),):
        kept = {d: s for d, s in found.get(part.query.text, {}).items() if d not in query.query.excluded}
        for document, amount in worth(kept, query.fuse).items():
            added[document] = added.get(document, 0.0) + weight * amount
    return sorted(added.items(), key=lambda item: (np.float32(item[1]), item[0]), reverse=True)[:k]


@pytest.mark.parametrize("seed", some_by_day(range(50), 5))
def test_fused_rankings_equal_a_plain_computation(store, seed):
    """Random lists with ties, empty lists, other numbers of parts, negative weights, excluded documents."""
    draw = random.Random(seed)
    # Powers of two, so that equal sums are equal in whichever order they are added.
    found = {
        f"text {number}": {
            document: draw.choice([0.5, 1, 2, 4, 8]) for document in draw.sample(IDS, draw.randint(0, 12))
        }
        for number in range(12)
    }
    method = list(METHODS)[seed % len(METHODS)]
    queries = []
    for number in range(6):
        texts = [f"text {draw.randrange(14)}" for _ in range(draw.randint(0, 4))]
        weights = [draw.choice([1.0, 1.0, 0.5, 2.0, -0.5, -1.0]) for _ in texts]
        queries.append(apart(str(number), texts, weights, method, tuple(draw.sample(IDS, draw.choice([0, 0, 2])))))
    found |= {f"original {number}": {"d01": 2.0, "d02": 2.0, "d03": 1.0} for number in range(6)}
    k = draw.choice([3, 10, 100])
    run = stored_search(ByText(found), SMALL, queries, k, Runtime(store=store)).run
    assert any(len(query.parts) > 1 for query in queries)
    for (_, ranking), query in zip(run, queries, strict=True):
        expected = plainly_fused(found, query, k)
        assert [score for _, score in ranking] == pytest.approx([score for _, score in expected], rel=1e-5, abs=1e-6)
        if method != "zscore":  # whose deviations differ in the last bit, so that sums that are equal may not be
            assert [document for document, _ in ranking] == [document for document, _ in expected]


FOUND = {"one": {"d01": 3.0, "d02": 1.0}, "two": {"d02": 4.0}, "original q": {"d09": 1.0}, "original r": {"d08": 7.0}}


def test_a_query_with_a_negative_weight_pushes_down_what_it_finds(store):
    query = apart("q", ["one", "two"], [1.0, -0.5], "minmax")
    [(_, ranking)] = stored_search(ByText(FOUND), SMALL, [query], 10, Runtime(store=store)).run
    assert ranking == [("d01", 1.0), ("d02", -0.5)]


def test_queries_without_parts_are_searched_as_they_are_among_the_others(store):
    retriever = ByText(FOUND)
    queries = [apart("q", ["one", "two"], [1.0, 1.0], "sum"), SearchQuery(Query("r", "original r"))]
    run = stored_search(retriever, SMALL, queries, 10, Runtime(store=store)).run
    assert dict(run) == {"q": [("d02", 5.0), ("d01", 3.0)], "r": [("d08", pytest.approx(1 / 61))]}
    assert retriever.searches == [["one", "original r"], ["two"]]


def test_one_part_each_is_one_search_whose_scores_stay(store):
    queries = [apart("q", ["one"], [1.0], "rrf")]
    assert dict(stored_search(ByText(FOUND), SMALL, queries, 10, Runtime(store=store)).run) == {
        "q": [("d01", 3.0), ("d02", 1.0)]
    }


def test_every_search_is_kept_and_not_repeated(store):
    first, again = ByText(FOUND), ByText(FOUND)
    query = apart("q", ["one", "two"], [1.0, 1.0], "rrf")
    stored_search(first, SMALL, [query], 10, Runtime(store=store))
    stored_search(again, SMALL, [apart("q", ["two", "one"], [2.0, -1.0], "sum")], 5, Runtime(store=store))
    assert (len(first.searches), again.searches) == (2, [])


def test_costs_add_up_and_the_corpus_is_prepared_once(store):
    queries = [apart("q", ["one", "two"], [1.0, 1.0], "rrf"), apart("r", ["two", "one"], [1.0, 1.0], "rrf")]
    searched = stored_search(ByText(FOUND), SMALL, queries, 10, Runtime(store=store))
    assert (searched.cost.tokens, searched.prepared.seconds) == (4, 5.0)
    assert searched.cost.seconds >= 2.0


def test_parts_and_their_weights_are_in_the_key():
    assert SearchQuery(Query("q", "text")).key == ["q", "text", (), {}, []]
    one, other = (apart("q", ["one", "two"], weights, "rrf") for weights in ([1.0, 1.0], [1.0, -1.0]))
    assert len({repr(query.key) for query in (one, other, apart("q", ["one", "two"], [1.0, 1.0], "sum"))}) == 3


class Broken(Stage, kind="retrieve"):
    """A retriever of a user, which returns a run that cannot be used."""

    name: str = "broken"
    fault: str

    def search(self, dataset, queries, k, runtime):
        rows, scores, ids = [[3, 2]], [[2.0, 1.0]], [query.query.id for query in queries]
        if self.fault == "other queries":
            ids = ["another"]
        elif self.fault == "finite":
            scores = [[2.0, np.nan]]
        elif self.fault == "scores for":
            scores = [[2.0]]
        else:
            rows = {"gap": [[-1, 2]], "twice": [[2, 2]], "does not have": [[2, 30]]}[self.fault]
        return Searched(Run(tuple(ids), np.array(rows, np.int32), np.array(scores, np.float32), dataset.corpus))


@pytest.mark.parametrize("fault", ["other queries", "scores for", "does not have", "gap", "twice", "finite"])
def test_a_run_of_a_user_that_cannot_be_used_is_one_line_and_is_not_stored(fault, store):
    for _ in range(2):
        with error_states("Broken.search(dataset, queries, k, runtime)", fault):
            stored_search(Broken(fault=fault), SMALL, [SearchQuery(Query("q", "text"))], 5, Runtime(store=store))
