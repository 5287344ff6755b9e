"""A served corpus returns what its retriever returns, keeps no query, and answers alone as in a batch."""

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from r2med.data import Corpus, Query, load
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import retriever_of
from r2med.foundation.store import Store
from r2med.server.http_app import create_app
from r2med.server.search_protocol import answer_of
from r2med.server.served_corpus import ServedData, open_served, open_served_corpus
from r2med.systems.retrieve.retriever import SearchQuery
from support import chat_server as api
from support.agent_turns import TOOL, agent_and_reranker
from support.chat_models import setup
from support.datasets import dataset_of
from support.served_app import request, requests

SPECS = ["bm25", "minilm", "bm25+minilm", "fuse(bm25+fuse(bm25(scorer=lucene)+minilm), depth=3)"]


@pytest.fixture(scope="module")
def module_store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def dataset(module_store):
    """Return a demo cut short: a dense model takes time for every word."""
    whole = load("demo/MedQA-Diag", module_store)
    corpus = Corpus.of((identifier, text[:120]) for identifier, text in islice(whole.corpus, 12))
    return replace(whole, corpus=corpus, queries=[replace(q, text=q.text[:80]) for q in whole.queries[:4]])


@pytest.fixture(scope="module")
def all_served(dataset, module_store):
    return {spec: open_served_corpus(dataset, spec, Runtime(device="cpu"), module_store) for spec in SPECS}


@pytest.fixture(params=SPECS)
def served_by(request, all_served):
    return all_served[request.param]


def close_to(hits):
    return [(hit.id, pytest.approx(hit.score, rel=1e-5)) for hit in hits]


def pairs(hits):
    return [(hit.id, hit.score) for hit in hits]


def test_it_returns_what_the_retriever_returns_with_the_instruction_of_the_dataset(served_by, dataset, module_store):
    texts = [query.text for query in dataset.queries]
    asked = [SearchQuery(Query(str(i), text)) for i, text in enumerate(texts)]
    stage, runtime = retriever_of(parse_stage(served_by.retriever)), Runtime(device="cpu", store=module_store)
    run = stage.search(dataset, asked, 10, runtime).run
    for hits, (_, expected) in zip(served_by.search(texts, 10), run, strict=True):
        assert close_to(hits) == expected
        assert [hit.contents for hit in hits] == [
            text if "\n" in text else f"\n{text}"
            for text in dataset.corpus.texts(dataset.corpus.rows([i for i, _ in expected]))
        ]


def test_a_query_has_the_same_results_alone_and_in_a_batch(served_by, dataset):
    texts = [query.text for query in dataset.queries]
    together = served_by.search(texts, 10)
    for text, hits in zip(texts, together, strict=True):
        [alone] = served_by.search([text], 10)
        # BM25's scores are equal; a dense model's vectors differ in the last bits with the size of a batch.
        assert pairs(alone) == (pairs(hits) if served_by.retriever == "bm25" else close_to(hits))


def test_simultaneous_requests_are_answered_as_if_each_came_alone(dataset, all_served):
    app = create_app(ServedData(all_served["bm25"]))
    questions = [
        {"queries": [query.text], "topk": 1 + index % 3, "return_scores": bool(index % 2)}
        for index, query in enumerate([*dataset.queries, *dataset.queries])
    ]
    alone = [request(app, json=question).content for question in questions]
    calls = [{"method": "POST", "url": "/retrieve", "json": question} for question in questions]
    assert [answer.content for answer in requests(app, *calls)] == alone


def test_no_query_is_kept_in_the_store(served_by, module_store):
    before = sorted(module_store.root.rglob("*"))
    served_by.search(["a patient whose case is nobody's business"], 5)
    assert sorted(module_store.root.rglob("*")) == before


def test_a_user_s_own_model_is_served_and_contents_start_with_a_title_line_whatever_the_text(tmp_path, monkeypatch):
    corpus = Corpus.of([("d", ""), ("c", "text"), ("b", "title\ntext"), ("a", "\ntext")])
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "even_model.py").write_text(
        "import numpy as np\n"
        "class Model:\n"
        "    def encode_corpus(self, texts): return np.ones((len(texts), 2))\n"
        "    def encode_queries(self, texts): return np.ones((len(texts), 2))\n"
    )
    served = open_served_corpus(dataset_of(corpus), "py:even_model:Model", Runtime(), Store(tmp_path / "store"))
    assert served.retriever == "py:even_model:Model"
    [hits] = served.search(["anything"], 10)
    assert [(hit.id, hit.contents) for hit in hits] == [  # all tie
        ("d", "\n"),
        ("c", "\ntext"),
        ("b", "title\ntext"),
        ("a", "\ntext"),
    ]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("hyde(author) → bm25", "has 2 stages: this needs a single retriever"),
        ("bm25 -> bge-reranker@100", "has 2 stages: this needs a single retriever"),
        ("rm3", "rm3 is an expansion: this needs a single retriever"),
        ("hyde(author)", "hyde is an expansion"),
        ("bm26", "did you mean bm25"),
        ("bm25+minlm", "did you mean minilm"),
        ("", "cannot read"),
    ],
)
def test_a_spec_that_is_not_a_single_retriever_is_a_user_error(dataset, module_store, spec, says):
    with pytest.raises(UserError, match=says):
        open_served_corpus(dataset, spec, Runtime(), module_store)


@pytest.mark.usefixtures("marked_keys")
def test_a_question_is_answered_by_an_agent_and_served(tmp_path: Path) -> None:
    with api.serve(agent_and_reranker) as server:
        runtime = setup(server, tmp_path / "store")
        data = load("demo/Biology", runtime.store)
        served, systems = open_served(data, [TOOL], "", runtime, runtime.store)
        assert not server.requests, "nothing is asked before a question comes"
        assert served.retriever == "bm25", "/retrieve asks no LLM"
        answer = answer_of(systems[0], "why is it dark", 3)
        assert answer.status == "ok" and len(answer.passages) == 3 and len(answer.turns) == 4
        assert answer.stages[0].calls == 3 + 3
        with pytest.raises(UserError, match="asks an LLM, which every search would pay for"):
            open_served(data, [], TOOL, runtime, runtime.store)
