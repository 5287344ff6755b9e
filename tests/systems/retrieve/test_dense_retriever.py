"""A dense retriever with real weights, alone and as part of a fusion."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from r2med import Dataset, Qrels, Query, Runtime, UserError
from r2med.data import Corpus
from r2med.models.encoders.user_objects import UserObjects
from r2med.systems.system import System

TOPICS = ["myocardial infarction", "tax law", "pulmonary embolism", "a recipe for bread"]


def tiny(query, documents=TOPICS):
    corpus = Corpus.of((text, text) for text in documents)
    return Dataset("tiny", (Query("q", query),), corpus, Qrels({"q": {documents[0]: 1}}))


def ranking(spec, dataset, store, k=10, runtime=None):
    return [
        document for document, _ in next(iter(System.parse(spec, runtime).with_store(store).run(dataset, k).run))[1]
    ]


def test_a_heart_attack_is_nearer_to_myocardial_infarction_than_to_tax_law(store):
    found = ranking("minilm", tiny("heart attack"), store)
    assert found[0] == "myocardial infarction"
    assert found.index("myocardial infarction") < found.index("tax law")
    assert len(found) == len(TOPICS)


def test_fusion_finds_what_either_part_finds(store):
    documents = ["myocardial infarction", "heart of palm salad attack plan", "tax law"]
    assert set(ranking("bm25+minilm", tiny("heart attack", documents), store)) == set(documents)
    assert ranking("bm25", tiny("heart attack", documents), store) == [documents[1]]


def test_excluded_documents_are_left_out_of_dense_rankings(store):
    dataset = tiny("heart attack")
    query = Query("q", "heart attack", excluded=("myocardial infarction",))
    dataset = Dataset("tiny", (query,), dataset.corpus, dataset.qrels)
    assert "myocardial infarction" not in ranking("minilm", dataset, store)
    assert "myocardial infarction" not in ranking("bm25+minilm", dataset, store)


def test_a_run_with_stored_vectors_needs_no_weights(store, monkeypatch):
    dataset = tiny("heart attack")
    first = ranking("minilm", dataset, store)
    monkeypatch.setattr("r2med.models.encoders.transformer.Tower.__init__", None)  # would fail if a model were loaded
    monkeypatch.setattr("r2med.systems.retrieve.stored_search.VERSION", -1)  # the run itself is not read back
    assert ranking("minilm", dataset, store) == first


def test_an_empty_corpus_gives_a_one_line_error(store):
    empty = Dataset("empty", (Query("q", "x"),), Corpus.of([]), Qrels({"q": {"d": 1}}))
    for spec in ("minilm", "bm25+minilm"):
        with pytest.raises(UserError, match="corpus is empty"):
            System.parse(spec).run(empty, 5)


class Answering:
    """A model that signals when it gets a query and then waits for an event."""

    revision = "1"

    def __init__(self, name, asked, wait=None):
        self.name, self._asked, self._wait = name, asked, wait

    def encode_corpus(self, texts):
        return np.ones((len(texts), 2))

    def encode_queries(self, texts):
        self._asked.set()
        assert self._wait is None or self._wait.wait(60)
        return np.ones((len(texts), 2))


def test_a_slow_model_does_not_block_other_models(store):
    slow_is_asked, fast_is_asked, dataset = Event(), Event(), tiny("heart attack")
    slow, fast = Answering("slow", slow_is_asked, wait=fast_is_asked), Answering("fast", fast_is_asked)
    runtime = Runtime()
    slow_spec, fast_spec = map(UserObjects.of(runtime).name, (slow, fast))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(ranking, slow_spec, dataset, store, runtime=runtime)
        assert slow_is_asked.wait(60)
        second = threads.submit(ranking, fast_spec, dataset, store, runtime=runtime)
        assert len(second.result()) == len(first.result()) == len(TOPICS)
