"""Fusion: ranks or scores of several retrievers added up, each part's run reused."""

import numpy as np
import pytest

from r2med.data import Corpus, Query
from r2med.errors import UserError
from r2med.retrieve.bm25 import BM25
from r2med.retrieve.cached import cached_search
from r2med.retrieve.contracts import SearchQuery
from r2med.retrieve.fusion import METHODS, Fusion
from r2med.retrieve.run import Run
from r2med.store import Store


class Fixed:
    """Finds what it is told to, and counts how often it is asked."""

    def __init__(self, name, scores):
        self.name, self.scores, self.asked = name, scores, []
        self.timings = {"index": 1.0}
        self.prepared = {"tokens": 7.0}

    def describe(self, instruction):
        return {"retriever": self.name}

    def index(self, corpus, store, instruction):
        self.corpus = corpus
        return self

    def usage(self):
        return {"tokens": 2.0}

    def search(self, queries, k):
        self.asked.append([(q.query.text, q.generated) for q in queries])
        rows = self.corpus.rows(list(self.scores))
        scores = np.array(list(self.scores.values()), dtype=np.float32)
        return Run.ranked([q.query.id for q in queries], [(rows, scores)] * len(queries), self.corpus)


CORPUS = Corpus.of((name, name) for name in "abcdef")
QUERY = SearchQuery(Query("q", "text"))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def fused(parts, store, asked=(QUERY,), k=10, **settings):
    run = cached_search(Fusion(tuple(parts), **settings), CORPUS, list(asked), k, store).run
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


def test_weights_weigh(store):
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
    assert [len(part.asked) for part in (one, two, three)] == [1, 1, 1]


def test_excluded_documents_are_left_out_of_every_part_before_it_counts(store):
    query = SearchQuery(Query("q", "text", excluded=("a",)))
    parts = Fixed("one", {"a": 9, "b": 5, "c": 1}), Fixed("two", {"a": 1, "c": 0.5})
    assert fused(parts, store, [query], method="minmax") == pytest.approx({"b": 1, "c": 1})


EXPANDED = SearchQuery(Query("q", "plain"), ("written",), "hyde")


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
    assert [call[0] for call in part.asked] == asked


def test_each_part_may_search_something_else(store):
    one, two = Fixed("one", {"a": 1}), Fixed("two", {"a": 1})
    fused((one, two), store, [EXPANDED], queries=("original", "expanded"))
    assert one.asked == [[("plain", ())]]
    assert two.asked == [[("plain", ("written",))]]


def test_searching_both_counts_as_one_part(store):
    parts = Fixed("one", {"a": 1}), Fixed("two", {"b": 1})
    found = fused(parts, store, [EXPANDED], queries=("both", "expanded"))
    assert found["a"] == found["b"]


def test_what_the_parts_used_and_took_is_added_up(store):
    fusion = Fusion((Fixed("one", {"a": 1}), Fixed("two", {"a": 1})))
    searched = cached_search(fusion, CORPUS, [QUERY], 5, store)
    assert searched.usage == {"tokens": 4.0}
    assert searched.timings["index"] == 2.0
    assert searched.prepared == {"tokens": 14.0}


@pytest.mark.parametrize(
    ("names", "queries"),
    [(("one",), ("both",)), (("one", "one"), ("expanded", "original")), (("one", "one"), ("expanded", "generated"))],
)
def test_a_part_that_searches_twice_prepares_its_corpus_once(store, names, queries):
    parts = tuple(Fixed(name, {"a": 1}) for name in names)
    searched = cached_search(Fusion(parts, queries=queries), CORPUS, [EXPANDED], 5, store)
    assert (searched.timings["index"], searched.prepared) == (1.0, {"tokens": 7.0})
    assert searched.usage == {"tokens": 4.0}, "it searches twice all the same"


def test_the_same_search_named_twice_is_done_once_and_counts_once(store):
    parts = Fixed("one", {"a": 1}), Fixed("one", {"a": 1}), Fixed("two", {"a": 1})
    searched = cached_search(Fusion(parts), CORPUS, [QUERY], 5, store)
    assert (searched.timings["index"], searched.usage) == (2.0, {"tokens": 4.0})


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"method": "rff"}, "did you mean rrf"),
        ({"weights": (1.0,)}, "give one for each"),
        ({"weights": (1.0, -1.0)}, "0 or more"),
        ({"queries": ("orignal",)}, "did you mean original"),
        ({"depth": 0}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(settings, says):
    with pytest.raises(UserError, match=says):
        Fusion((BM25(), BM25("lucene")), **settings)


def test_a_fusion_prints_as_it_is_typed():
    assert Fusion((BM25(), BM25("lucene"))).name == "bm25+bm25(scorer=lucene)"
    inner = Fusion((BM25(), BM25("lucene")))
    assert Fusion((inner, BM25(k1=3.0))).name == "fuse(bm25+bm25(scorer=lucene))+bm25(k1=3.0)"
    assert Fusion((BM25(),)).name == "fuse(bm25)"
    assert Fusion((BM25(), BM25(b=1.0)), weights=(1.0, 0.12345671)).name.endswith("weights=1:0.12345671)")
    fusion = Fusion((BM25(), BM25(k1=2.0)), "minmax", (1.0, 2.5), ("both",), 100)
    expected = "fuse(bm25+bm25(k1=2.0), method=minmax, weights=1:2.5, queries=both, depth=100)"
    assert fusion.name == expected
