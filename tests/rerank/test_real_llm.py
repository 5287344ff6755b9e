"""Every method once with a real small LLM in process: whatever it writes is an order or a counted failure."""

import pytest

from r2med import load
from r2med.data import Corpus, Dataset, Qrels
from r2med.llm.journaled import JournaledChat
from r2med.llm.llama import LlamaBackend
from r2med.llm.llm_cards import LLMS
from r2med.rerank.judge import LLMReranker
from r2med.retrieve.bm25 import BM25
from r2med.retrieve.retriever import SearchQuery
from r2med.setup import Setup
from r2med.spec import parse_stage
from r2med.stages import stage
from r2med.store import Store

pytestmark = pytest.mark.slow

CARD = LLMS.card("smollm2").model_copy(update={"max_tokens": 12})
ONE_THREAD = Setup(threads=1)  # on a busy machine several threads wait for each other at every layer

# Ours are longer than a model of this size can follow, or a test should take.
SHORT = {
    "listwise": "{query}\n{passages}\nPut the {count} passages into order, such as [2] > [1]. Write only that.",
    "groupwise": '{query}\n{passages}\nScore all {count} passages from 0 to 10, such as {"1": 3}. Write only that.',
    "pointwise": '{query}\n{passages}\nScore the passage from 0 to 10, such as {"score": 3}. Write only that.',
}
DEPTHS = {"listwise": 4, "groupwise": 4, "pointwise": 2}


@pytest.fixture(scope="module")
def smollm2():
    return LlamaBackend(CARD, ONE_THREAD)


@pytest.fixture
def small(tmp_path):
    """One query of the demo with four of its documents, one of them gold."""
    demo = load("demo/Biology")
    query = min(demo.queries, key=lambda query: len(query.text))
    gold = next(document for document, grade in demo.qrels[query.id].items() if grade > 0)
    found = BM25().index(demo, Store(tmp_path / "store")).search([SearchQuery(query)], 4).run
    ids = [gold, *(document for document in demo.corpus.ids(found.rows[0]) if document != gold)][:4]
    corpus = Corpus.of([*zip(ids, demo.corpus.texts(demo.corpus.rows(ids)), strict=True)])
    return Dataset("small", (query,), corpus, Qrels({query.id: {gold: 1}}), demo.card)


@pytest.mark.parametrize("method", SHORT)
def test_a_real_llm_ends_as_an_order_or_a_counted_failure_and_is_asked_once(small, smollm2, tmp_path, method):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "system.txt").write_text("Be brief.")
    (tmp_path / "prompts" / f"{method}.post.txt").write_text(SHORT[method])
    store = Store(tmp_path / "store")
    asked = [SearchQuery(query) for query in small.queries]
    run = BM25().index(small, store).search(asked, 4).run
    assert run.found[0] >= DEPTHS[method]
    llm = JournaledChat(CARD, smollm2, store)
    (call,) = parse_stage(f"{method}(smollm2, words=8)@{DEPTHS[method]}")
    reranker = LLMReranker(stage(call, "rerank"), llm, CARD, tmp_path / "prompts")
    first = reranker.rerank(small, asked, run, store)
    calls = first.cost.calls
    assert calls == (2 if method == "pointwise" else 1)
    assert sorted(first.run.rows[0]) == sorted(run.rows[0])
    assert first.failures == sum(first.failure_kinds.values()) <= calls
    assert set(first.failure_kinds) <= {"invalid", "truncated"}
    assert bool(first.failures) == bool(first.notices)
    again = reranker.rerank(small, asked, run, store)
    assert (again.run.rows == first.run.rows).all()
    assert (again.failure_kinds, again.repairs, again.cost) == (first.failure_kinds, first.repairs, first.cost)
