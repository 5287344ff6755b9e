"""Live searches find the same documents, and save nothing about a query."""

from functools import partial

from r2med.data import Corpus, Query
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import retriever_of
from r2med.foundation.store import Store
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.bm25.index import VOCABULARY_RATIO
from r2med.systems.retrieve.retriever import SearchQuery
from r2med.systems.retrieve.stored_search import stored_search
from support.datasets import dataset_of

CORPUS = Corpus.of([("a", "fever and cough"), ("b", "fever"), ("c", "cough and rash"), ("d", "rash")])
ASKED = [SearchQuery(Query("1", "fever rash")), SearchQuery(Query("2", "cough cough fever"))]


def found(searched):
    return list(searched.run)


def test_bm25_finds_the_same_alone_and_among_many_queries(tmp_path):
    words = ["über", "zebra", "a1", "漢", "😀", "fever", "\uffff", "é", "e"]
    others = " ".join(f"w{i}" for i in range(12 * VOCABULARY_RATIO))  # enough that a dozen terms are few
    corpus = Corpus.of([("all", others), *((str(i), " ".join(words[: i % len(words) + 1])) for i in range(50))])
    searched = partial(BM25().search, dataset_of(corpus), runtime=Runtime(store=Store(tmp_path)))
    many = " ".join(f"w{i}" for i in range(20))
    for text in [*words, " ".join(words), "absent", "", "zzz über 😀", f"fever {many}"]:
        asked = [SearchQuery(Query("1", text))]
        assert (
            found(searched(queries=asked, k=7))
            == found(searched(queries=[*asked, SearchQuery(Query("2", others))], k=7))[:1]
        )
    assert [len(hits) > 0 for _, hits in searched(queries=[SearchQuery(Query("1", "zebra"))], k=7).run] == [True]


def test_a_live_fusion_finds_the_same_and_saves_nothing(tmp_path):
    spec = "fuse(bm25+fuse(bm25(scorer=lucene)+bm25(k1=2)), weights=1:2, depth=3)"
    fusion, data, store = retriever_of(parse_stage(spec)), dataset_of(CORPUS), Store(tmp_path / "live", "live")
    kept, live = Runtime(store=Store(tmp_path / "kept")), Runtime(store=store)
    stored_search(fusion, data, ASKED, 1, live)
    before = sorted(store.root.rglob("*"))
    for k in (1, 3, 10):
        assert found(stored_search(fusion, data, ASKED, k, live)) == found(stored_search(fusion, data, ASKED, k, kept))
        one = stored_search(fusion, data, ASKED[1:], k, live)
        assert found(one) == found(stored_search(fusion, data, ASKED, k, kept))[1:]
    assert sorted(store.root.rglob("*")) == before
