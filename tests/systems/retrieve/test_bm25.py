"""BM25 against its definition: the published scorer, Lucene's, ties, top k, the index in the store."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2med import System
from r2med.data import Corpus, Query, load
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.foundation.text import english
from r2med.systems.retrieve.bm25 import BM25, index
from r2med.systems.retrieve.bm25.scorers import byte_length
from r2med.systems.retrieve.retriever import SearchQuery
from support.datasets import dataset_of, r2med_folder

WORDS = "fever cough dyspnoea rash oedema anaemia jaundice pain fevers coughing the of (Rash), 38.5 naïve".split()


def corpus_of(*texts):
    return Corpus.of((f"d{i}", text) for i, text in enumerate(texts))


def search(corpus, text, store, k=10, **settings):
    return ranking(dataset_of(corpus), text, k, Runtime(store=store), **settings)


def ranking(dataset, text, k, runtime, **settings):
    [(_, documents)] = BM25(**settings).search(dataset, [SearchQuery(Query("q", text))], k, runtime).run
    return documents


def published(texts, query, k1=0.9, b=0.4):
    """The formula of the benchmark: both sides are weighted by w = idf·tf / (tf + k1·(1−b + b·len/avglen))."""
    documents = [Counter(english(text)) for text in texts]
    df = Counter(term for document in documents for term in document)
    average = sum(document.total() for document in documents) / len(documents)

    def weights(bag):
        length = sum(tf for term, tf in bag.items() if term in df)
        norm = k1 * (1 - b + b * length / average)
        return {t: math.log((len(texts) + 1) / (df[t] + 0.5)) * tf / (tf + norm) for t, tf in bag.items() if t in df}

    wanted = weights(Counter(english(query)))
    return [sum(w * weights(document).get(t, 0) for t, w in wanted.items()) for document in documents]


def lucene(texts, query, k1=0.9, b=0.4):
    """BM25Similarity: one-byte lengths, documents without a term do not count, and query tf is linear."""
    documents = [Counter(english(text)) for text in texts]
    df = Counter(term for document in documents for term in document)
    n = sum(bool(document) for document in documents)
    average = sum(document.total() for document in documents) / n

    def one_byte(length):
        if length < 24 + 8:
            return length
        shift = (length - 24).bit_length() - 4
        return 24 + ((length - 24) >> shift << shift)

    def score(document):
        norm = k1 * (1 - b + b * one_byte(document.total()) / average)
        return sum(
            tf * math.log(1 + (n - df[t] + 0.5) / (df[t] + 0.5)) * document[t] / (document[t] + norm)
            for t, tf in Counter(english(query)).items()
            if t in document
        )

    return [score(document) for document in documents]


TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), min_size=1, max_size=12)


@pytest.mark.parametrize(("scorer", "reference"), [("published", published), ("lucene", lucene)])
@given(
    texts=TEXTS,
    query=st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join),
    k1=st.sampled_from([0.0, 0.9, 2.0]),
    b=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_every_score_equals_the_formula(tmp_path_factory, scorer, reference, texts, query, k1, b):
    if not any(map(english, texts)):
        return  # nothing to normalise by
    store = Store(tmp_path_factory.mktemp("store"))
    found = dict(search(corpus_of(*texts), query, store, k=100, scorer=scorer, k1=k1, b=b))
    expected = {f"d{i}": s for i, s in enumerate(reference(texts, query, k1, b)) if s > 0}
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_two_scorers_give_different_scores():
    data = dataset_of(corpus_of("a"))
    assert BM25().key(data, Runtime()) != BM25(scorer="lucene").key(data, Runtime())


@pytest.mark.parametrize(
    ("length", "back"),
    [(0, 0), (23, 23), (39, 39), (40, 40), (41, 40), (57, 56), (100, 96), (1273, 1176), (49566, 49176)],
)
def test_lengths_are_rounded_like_lucene_norms(length, back):
    assert byte_length(np.array([length]))[0] == back


def test_ties_go_to_the_higher_document_id_also_at_the_cut(store):
    corpus = Corpus.of((i, "fever") for i in ["b", "z", "10", "9", "é", "a"])
    ids = ["é", "z", "b", "a", "9", "10"]
    assert [d for d, _ in search(corpus, "fever", store)] == ids
    for k in range(1, 6):
        assert [d for d, _ in search(corpus, "fever", store, k=k)] == ids[:k]


def test_documents_that_share_no_word_with_the_query_are_not_found(store):
    assert search(corpus_of("fever", "cough"), "jaundice", store) == []
    assert [d for d, _ in search(corpus_of("fever", "cough"), "cough the", store)] == ["d1"]


def test_top_k_is_the_beginning_of_the_full_ranking(store):
    rng = np.random.default_rng(0)
    corpus = corpus_of(*(" ".join(rng.choice(WORDS, rng.integers(1, 30))) for _ in range(500)))
    everything = search(corpus, "fever cough rash", store, k=500)
    for k in (1, 7, 100):
        assert search(corpus, "fever cough rash", store, k=k) == everything[:k]


def test_a_corpus_of_many_blocks_and_segments_scores_as_one(store, tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    corpus = corpus_of(*(" ".join(rng.choice(WORDS, rng.integers(0, 30))) for _ in range(300)))
    whole = search(corpus, "fever oedema naïve 38.5", store, k=200)
    monkeypatch.setattr(index, "BLOCK_DOCUMENTS", 16)
    monkeypatch.setattr(index, "SEGMENT_DOCUMENTS", 64)
    assert search(corpus, "fever oedema naïve 38.5", Store(tmp_path / "other"), k=200) == whole
    runtime = Runtime(store=Store(tmp_path / "other", "live"))
    object.__setattr__(runtime.setup, "memory", 1)  # so that each segment is in memory in its turn only
    for _ in range(2):
        assert ranking(dataset_of(corpus), "fever oedema naïve 38.5", 200, runtime) == whole


@pytest.mark.parametrize("size", [64, 6_000])
def test_a_segment_has_a_limited_size_of_text_and_its_limit_changes_no_score(size, store, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 30))) for _ in range(100)]
    corpus = corpus_of(*texts, "cough " * 300, "", "ilex fever " * 1000)
    whole = search(corpus, "fever oedema naïve cough", store, k=200)
    monkeypatch.setattr(index, "SEGMENT_BYTES", size)
    monkeypatch.setattr(index, "SEGMENT_DOCUMENTS", 40)
    runtime = Runtime(store=Store(tmp_path / "other"))
    segments = index.open_index(corpus, runtime).segments
    bounds = [*(segment.start for segment in segments), len(corpus)]
    sizes = [len("".join(corpus.texts(range(*bound))).encode()) for bound in pairwise(bounds)]
    assert sum(len(segment.lengths) for segment in segments) == len(corpus) and len(segments) > 3
    assert all(after <= size or last == first + 1 for (first, last), after in zip(pairwise(bounds), sizes, strict=True))
    assert ranking(dataset_of(corpus), "fever oedema naïve cough", 200, runtime) == whole


def test_all_threads_together_cut_a_limited_size_of_text(store, monkeypatch):
    sizes, cut = [], index.cut_chunks

    def cut_block(texts):
        sizes.append(sum(map(len, texts.to_pylist())))
        return cut(texts)

    monkeypatch.setattr(index, "cut_chunks", cut_block)
    monkeypatch.setattr(index, "BLOCKS_BYTES", 1000)
    monkeypatch.setenv("R2MED_THREADS", "2")
    index.open_index(corpus_of(*("fever and cough" for _ in range(200))), Runtime(store=store))
    assert sum(sizes) == 3000 and 0.9 < max(sizes) / 500 <= 1


MARKED = st.text(alphabet="aB0xyz .,:;\"'_-()#*\t\x00é\u05d4\u0301\u200d\ufe0f\u20e3\U0001f600\U0001f3fd", max_size=40)


@given(texts=st.lists(st.text(max_size=40) | MARKED, min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_the_fast_indexer_gives_the_same_terms_as_the_analyser(tmp_path_factory, texts):
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    [segment] = index.open_index(corpus_of(*texts), Runtime(store=Store(tmp_path_factory.mktemp("store")))).segments
    bags = [Counter() for _ in texts]
    for number, term in enumerate(segment.terms.to_pylist()):
        here = slice(segment.offsets[number], segment.offsets[number + 1])
        for document, tf in zip(segment.documents[here], segment.frequencies[here], strict=True):
            bags[document][term] = int(tf)
    assert bags == [Counter(english(text)) for text in texts]


def test_the_index_is_built_once_and_then_memory_mapped(store, monkeypatch):
    corpus = corpus_of("fever", "cough and fever")
    first = search(corpus, "fever", store)
    monkeypatch.setattr(index, "_write_segment", None)  # would fail if it were called
    assert search(corpus, "fever", store) == first
    assert search(corpus, "fever", store, k1=2.0) != first


def test_a_term_frequency_above_255_counts_in_full(store):
    [segment] = index.open_index(corpus_of("fever " * 70_000, "cough"), Runtime(store=store)).segments
    assert sorted(segment.frequencies.tolist()) == [1, 70_000]


def test_documents_of_50000_characters_and_control_characters_are_searched(store):
    long = "x" * 49_000 + " fever"
    assert [d for d, _ in search(corpus_of(long, "a\x00b\x07 cough"), "fever cough", store)] == ["d1", "d0"]


def test_an_empty_corpus_and_wrong_settings_give_one_line_errors(store):
    with pytest.raises(UserError, match="corpus is empty"):
        System(BM25()).run(dataset_of(Corpus.of([])), 10)
    with pytest.raises(UserError, match="did you mean lucene"):
        BM25(scorer="lucen")
    with pytest.raises(UserError, match="k1"):
        BM25(k1=-1)
    with pytest.raises(UserError, match="k1"):
        BM25(k1=float("nan"))
    with pytest.raises(UserError, match="b must be 1 or less"):
        BM25(b=1.5)
    with pytest.raises(UserError, match="k must be at least 1"):
        System(BM25()).run(dataset_of(corpus_of("fever")), 0)


def test_a_corpus_of_only_stop_words_finds_nothing(store):
    assert search(corpus_of("the", "of"), "the fever", store) == []
    assert search(corpus_of("the", "of"), "the fever", store, scorer="lucene") == []


ROWS = [
    ("a", "fever and cough"),
    ("b", "rash of the trunk"),
    ("a", "fever fever jaundice, at last"),
    ("c", "cough"),
    ("b", "rash of the trunk"),
    ("d", ""),
    ("a", "cough and pain"),
]


@pytest.mark.parametrize(
    ("scorer", "reference", "rows"), [("published", published, ROWS), ("lucene", lucene, dict(ROWS).items())]
)
@pytest.mark.parametrize("query", ["fever cough", "jaundice", "rash pain cough cough"])
def test_rows_with_repeated_ids_count_in_the_published_statistics_but_not_in_lucenes(
    scorer, reference, rows, query, tmp_path
):
    folder = r2med_folder(tmp_path / "set", [{"id": i, "text": t} for i, t in ROWS])
    corpus = load(folder, Store(tmp_path / "home")).corpus
    expected = dict(
        zip([i for i, _ in rows], reference([t for _, t in rows], query), strict=True)
    )  # the last one counts
    found = dict(search(corpus, query, Store(tmp_path / "home"), scorer=scorer))
    assert found == pytest.approx({i: score for i, score in expected.items() if score > 0})
