"""What is served finds what the retriever finds, keeps nothing of what it is asked, and is the same in company."""

from dataclasses import replace
from itertools import islice

import pytest

from r2med.data import Corpus, Query, load
from r2med.errors import UserError
from r2med.retrieve.contracts import SearchQuery
from r2med.retrieve.registry import build
from r2med.serve import create_app, open_shelf
from r2med.setup import Setup
from r2med.spec import parse_stage
from r2med.store import Store
from support.shelves import dataset_of, request, requests

SPECS = ["bm25", "minilm", "bm25+minilm", "fuse(bm25+fuse(bm25(scorer=lucene)+minilm), depth=3)"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def dataset(store):
    """Return a demo cut short: a dense model takes its time for every word."""
    whole = load("demo/MedQA-Diag", store)
    corpus = Corpus.of((identifier, text[:120]) for identifier, text in islice(whole.corpus, 12))
    return replace(whole, corpus=corpus, queries=[replace(q, text=q.text[:80]) for q in whole.queries[:4]])


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Keep torch's threads from spinning for each other's sake on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def shelves(dataset, store):
    return {spec: open_shelf(dataset, spec, Setup(device="cpu"), store) for spec in SPECS}


@pytest.fixture(params=SPECS)
def shelf_of(request, shelves):
    return shelves[request.param]


def close_to(hits):
    return [(hit.id, pytest.approx(hit.score, rel=1e-5)) for hit in hits]


def pairs(hits):
    return [(hit.id, hit.score) for hit in hits]


def test_it_finds_what_the_retriever_finds_with_the_words_of_the_dataset(shelf_of, dataset, store):
    texts = [query.text for query in dataset.queries]
    retriever = build(parse_stage(shelf_of.retriever), Setup(device="cpu"))
    searcher = retriever.index(dataset.corpus, store, dataset.card.instruction)
    run = searcher.search([SearchQuery(Query(str(i), text)) for i, text in enumerate(texts)], 10)
    for hits, (_, expected) in zip(shelf_of.find(texts, 10), run, strict=True):
        assert close_to(hits) == expected
        assert [hit.text for hit in hits] == dataset.corpus.texts(dataset.corpus.rows([i for i, _ in expected]))


def test_alone_and_in_company_a_query_finds_the_same(shelf_of, dataset):
    texts = [query.text for query in dataset.queries]
    together = shelf_of.find(texts, 10)
    for text, hits in zip(texts, together, strict=True):
        [alone] = shelf_of.find([text], 10)
        # Of words the very same; a dense model's vectors differ in the last bits between sizes of a batch.
        assert pairs(alone) == (pairs(hits) if shelf_of.retriever == "bm25" else close_to(hits))


def test_requests_at_one_time_are_answered_as_if_each_came_alone(dataset, shelves):
    app = create_app(shelves["bm25"])
    questions = [
        {"queries": [query.text], "topk": 1 + place % 3, "return_scores": bool(place % 2)}
        for place, query in enumerate([*dataset.queries, *dataset.queries])
    ]
    alone = [request(app, json=question).content for question in questions]
    calls = [{"method": "POST", "url": "/retrieve", "json": question} for question in questions]
    assert [answer.content for answer in requests(app, *calls)] == alone


def test_nothing_that_is_asked_is_kept(shelf_of, store):
    before = sorted(store.root.rglob("*"))
    shelf_of.find(["a patient whose case is nobody's business"], 5)
    assert sorted(store.root.rglob("*")) == before


def test_the_retriever_is_given_the_words_of_the_dataset(dataset, store, shelves, monkeypatch):
    given = []

    class Recording:
        name = "recording"

        def index(self, corpus, store, instruction):
            given.append(instruction)
            return shelves["bm25"].searcher

    monkeypatch.setattr("r2med.retrieve.registry.build", lambda calls, options: Recording())
    open_shelf(dataset, "bm25", Setup(), store)
    assert given == [dataset.card.instruction]
    assert given[0].kind == "Medical Exam"


def test_a_user_s_own_model_is_served(tmp_path, monkeypatch, corpus):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "even_model.py").write_text(
        "import numpy as np\n"
        "class Model:\n"
        "    def encode_corpus(self, texts): return np.ones((len(texts), 2))\n"
        "    def encode_queries(self, texts): return np.ones((len(texts), 2))\n"
    )
    shelf = open_shelf(dataset_of(corpus), "py:even_model:Model", Setup(), Store(tmp_path / "store"))
    assert shelf.retriever == "py:even_model:Model"
    [hits] = shelf.find(["anything"], 10)
    assert [hit.id for hit in hits] == sorted((i for i, _ in corpus), reverse=True)  # all tie


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("hyde(author) → bm25", "has 2 stages: serve takes a retriever alone"),
        ("bm25 -> bge-reranker@100", "has 2 stages: serve takes a retriever alone"),
        ("rm3", "rm3 is an expansion: serve takes a retriever alone"),
        ("hyde(author)", "hyde is an expansion"),
        ("bm26", "did you mean bm25"),
        ("bm25+minlm", "did you mean minilm"),
        ("", "cannot read"),
    ],
)
def test_what_does_not_search_by_itself_is_one_line(dataset, store, spec, says):
    with pytest.raises(UserError, match=says):
        open_shelf(dataset, spec, Setup(), store)
