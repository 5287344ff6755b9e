"""Fusion adds up ranks or scores of several retrievers and reuses the run of each part."""

import numpy as np
import pytest

from r2med.data import Corpus, Query
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, retriever_of
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.fused_rankings import METHODS
from r2med.systems.retrieve.fusion import Fusion
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from r2med.systems.retrieve.stored_search import stored_search
from support.datasets import dataset_of
from support.retrievers import ScriptedRetriever


class Fixed(ScriptedRetriever):
    """Retriever with fixed results."""

    def search(self, dataset, queries, k, runtime):
        self.searches.append([(q.query.text, q.generated) for q in queries])
        rows = dataset.corpus.rows(list(self.found))
        scores = np.array(list(self.found.values()), dtype=np.float32)
        run = Run.ranked([q.query.id for q in queries], [(rows[:k], scores[:k])] * len(queries), dataset.corpus)
        return Searched(run, Cost(seconds=1.0, tokens=2), Cost(seconds=1.0, tokens=7))


CORPUS = Corpus.of((name, name) for name in "abcdef")
SMALL = dataset_of(CORPUS)
QUERY = SearchQuery(Query("q", "text"))


def fusion(parts, **settings):
    return Fusion(parts=tuple(parts), **settings)


def fused(parts, store, asked=(QUERY,), k=10, **settings):
    run = stored_search(fusion(parts, **settings), SMALL, list(asked), k, Runtime(store=store)).run
    return dict(next(iter(run))[1])


def test_reciprocal_ranks_add_up(store):
    parts = Fixed("one", {"a": 9, "b": 8, "c": 7}), Fixed("two", {"b": 0.2, "d": 0.1})
    expected = {"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 63, "d": 1 / 62}
    assert fused(parts, store) == pytest.approx(expected)


def test_min_max_maps_each_part_to_0_1(store):
    parts = Fixed("one", {"a": 9, "b": 8, "c": 7}), Fixed("two", {"b": -2, "d": -4})
    expected = {"a": 1, "b": 0.5 + 1, "c": 0, "d": 0}
    assert fused(parts, store, method="minmax") == pytest.approx(expected)


def test_z_scores_are_worth_at_least_as_much_as_not_being_found(store):
    found = fused((Fixed("one", {"a": 3, "b": 2, "c": 1}), Fixed("two", {"d": 1})), store, method="zscore")
    deviation = np.std([1, 2, 3])
    assert found == pytest.approx({"a": 2 / deviation, "b": 1 / deviation, "c": 0, "d": 1})


@pytest.mark.parametrize("method", METHODS)
def test_parts_that_agree_keep_their_order(store, method):
    scores = {"a": 5.0, "c": 4.0, "b": 1.0}
    found = fused((Fixed("one", scores), Fixed("two", scores)), store, method=method)
    assert list(found) == ["a", "c", "b"]


@pytest.mark.parametrize("method", METHODS)
def test_scores_that_are_all_equal_do_not_break_a_method(store, method):
    found = fused((Fixed("one", {"a": 1.0, "b": 1.0}),), store, method=method)
    assert set(found) == {"a", "b"}
    assert np.isfinite(list(found.values())).all()


def test_weights_multiply_the_worth_of_a_part(store):
    parts = Fixed("one", {"a": 1.0}), Fixed("two", {"b": 1.0})
    assert list(fused(parts, store, weights=(0.4, 0.6))) == ["b", "a"]
    assert list(fused(parts, store, weights=(0.6, 0.4))) == ["a", "b"]


def test_ties_go_to_the_higher_id_and_the_cut_is_exact(store):
    parts = [Fixed(name, {name: 1.0}) for name in "abc"]
    assert list(fused(parts, store)) == ["c", "b", "a"]
    assert list(fused(parts, store, k=2)) == ["c", "b"]


def test_each_part_s_run_is_reused(store):
    one, two, three = Fixed("one", {"a": 1}), Fixed("two", {"b": 1}), Fixed("three", {"c": 1})
    fused((one, two), store)
    fused((one, two, three), store)
    fused((one, two), store, method="minmax")
    assert [len(part.searches) for part in (one, two, three)] == [1, 1, 1]


def test_excluded_documents_are_left_out_of_every_part(store):
    query = SearchQuery(Query("q", "text", excluded=("a",)))
    parts = Fixed("one", {"a": 9, "b": 5, "c": 1}), Fixed("two", {"a": 1, "c": 0.5})
    assert fused(parts, store, [query], method="minmax") == pytest.approx({"b": 1, "c": 1})


EXPANDED = SearchQuery(Query("q", "plain"), ("written",))


@pytest.mark.parametrize(
    ("queries", "asked"),
    [
        ((), [("plain", ("written",))]),
        (("original",), [("plain", ())]),
        (("both",), [("plain", ()), ("plain", ("written",))]),
        (("generated",), [("plain", ("written",))]),
    ],
)
def test_parts_may_search_the_original_the_generated_or_both(store, queries, asked):
    part = Fixed("one", {"a": 1})
    fused((part,), store, [EXPANDED], queries=queries)
    assert [call[0] for call in part.searches] == asked


def test_each_part_may_search_something_else(store):
    one, two = Fixed("one", {"a": 1}), Fixed("two", {"a": 1})
    fused((one, two), store, [EXPANDED], queries=("original", "expanded"))
    assert one.searches == [[("plain", ())]]
    assert two.searches == [[("plain", ("written",))]]


def test_searching_both_counts_as_one_part(store):
    parts = Fixed("one", {"a": 1}), Fixed("two", {"b": 1})
    found = fused(parts, store, [EXPANDED], queries=("both", "expanded"))
    assert found["a"] == found["b"]


def test_the_costs_of_the_parts_are_added_up(store):
    both = fusion((Fixed("one", {"a": 1}), Fixed("two", {"a": 1})))
    searched = stored_search(both, SMALL, [QUERY], 5, Runtime(store=store))
    assert searched.cost.tokens == 4
    assert searched.cost.seconds >= 2.0
    assert searched.prepared == Cost(seconds=2.0, tokens=14)


@pytest.mark.parametrize(
    ("names", "queries"),
    [(("one",), ("both",)), (("one", "one"), ("expanded", "original")), (("one", "one"), ("expanded", "generated"))],
)
def test_a_part_that_searches_twice_prepares_its_corpus_once(store, names, queries):
    parts = tuple(Fixed(name, {"a": 1}) for name in names)
    searched = stored_search(fusion(parts, queries=queries), SMALL, [EXPANDED], 5, Runtime(store=store))
    assert searched.prepared == Cost(seconds=1.0, tokens=7)
    assert searched.cost.tokens == 4, "it searches twice all the same"


def test_the_same_search_given_twice_runs_and_costs_once(store):
    parts = Fixed("one", {"a": 1}), Fixed("one", {"a": 1}), Fixed("two", {"a": 1})
    searched = stored_search(fusion(parts), SMALL, [QUERY], 5, Runtime(store=store))
    assert (searched.prepared.seconds, searched.cost.tokens) == (2.0, 4)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"method": "rff"}, "did you mean rrf"),
        ({"weights": (1.0,)}, "give one for each"),
        ({"weights": (1.0, -1.0)}, "0 or more"),
        ({"queries": ("orignal",)}, "did you mean original"),
        ({"depth": -1}, "0 or more"),
    ],
)
def test_invalid_settings_give_a_one_line_error(settings, says):
    with pytest.raises(UserError, match=says):
        Fusion(parts=(BM25(), BM25(scorer="lucene")), **settings)


def test_a_fusion_prints_as_it_is_typed():
    inner = Fusion(parts=(BM25(), BM25(scorer="lucene")))
    assert str(inner) == "bm25+bm25(scorer=lucene)"
    assert str(Fusion(parts=(inner, BM25(k1=3.0)))) == "fuse(bm25+bm25(scorer=lucene))+bm25(k1=3)"
    assert str(Fusion(parts=(BM25(),))) == "fuse(bm25)"
    assert str(Fusion(parts=(BM25(), BM25(b=1.0)), weights=(1.0, 0.12345671))).endswith("weights=1:0.12345671)")
    settings = {"method": "minmax", "weights": (1.0, 2.5), "queries": ("both",), "depth": 100}
    expected = "fuse(bm25+bm25(k1=2), method=minmax, weights=1:2.5, queries=both, depth=100)"
    assert str(Fusion(parts=(BM25(), BM25(k1=2.0)), **settings)) == expected
    assert retriever_of(parse_stage(expected)) == Fusion(parts=(BM25(), BM25(k1=2.0)), **settings)


def test_the_depth_limits_the_documents_of_each_part(store):
    parts = Fixed("one", {"a": 9, "b": 8, "c": 7}), Fixed("two", {"c": 0.2, "d": 0.1})
    assert set(fused(parts, store, depth=1)) == {"a", "c"}
    assert set(fused(parts, store, depth=2)) == {"a", "b", "c", "d"}
    assert fused(parts, store) == fused(parts, store, depth=1000)


class Listing(Stage, kind="retrieve"):
    """A retriever with a setting that cannot be hashed."""

    name: str = "listing"
    documents: list[str]

    def search(self, dataset, queries, k, runtime):
        found = dict.fromkeys(self.documents, 1.0)
        return Searched(Run.of({query.query.id: found for query in queries}))


def test_a_part_of_a_user_may_have_a_list_as_a_setting(store):
    assert set(fused((Listing(documents=["a"]), Listing(documents=["a", "b"])), store)) == {"a", "b"}
