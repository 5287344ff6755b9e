"""Each method with a real small LLM in this process. Every answer becomes an order or a counted failure."""

import pytest

from r2med import load
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.journaled import JournaledChat
from r2med.models.llm.llama import LlamaBackend
from r2med.models.llm.llm_cards import LLMS
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.retriever import SearchQuery
from support.llm_rerankers import reranker_of

pytestmark = pytest.mark.slow

CARD = LLMS.card("smollm2").model_copy(update={"max_tokens": 6})
ONE_THREAD = Runtime(threads=1)  # on a busy machine several threads wait for each other at every layer

# Ours are longer than a model of this size can follow, or a test should take.
SHORT = {
    "listwise": "{query}\n{passages}\nPut the {count} passages into order, such as [2] > [1]. Write only that.",
    "groupwise": '{query}\n{passages}\nScore all {count} passages from 0 to 10, such as {"1": 3}. Write only that.',
    "pointwise": '{query}\n{passages}\nScore the passage from 0 to 10, such as {"score": 3}. Write only that.',
}
DEPTH = 2


@pytest.fixture(scope="module")
def smollm2():
    return LlamaBackend(CARD, ONE_THREAD)


@pytest.fixture
def small():
    """One query with two long documents. One of them is relevant."""
    query = Query("0", "red spots")
    corpus = Corpus.of([("gold", "Measles has red spots."), ("other", "Red spots on fish.")])
    return Dataset("small", (query,), corpus, Qrels({"0": {"gold": 1}}), load("demo/Biology").card)


@pytest.mark.parametrize("method", SHORT)
def test_each_answer_of_a_real_llm_is_an_order_or_a_counted_failure_and_is_asked_once(small, smollm2, tmp_path, method):
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "system.txt").write_text("Be brief.")
    (tmp_path / "prompts" / f"{method}.post.txt").write_text(SHORT[method])
    store = Store(tmp_path / "store")
    asked = [SearchQuery(query) for query in small.queries]
    run = BM25().search(small, asked, DEPTH, ONE_THREAD.with_store(store)).run
    assert run.found[0] == DEPTH
    llm = JournaledChat(CARD, smollm2, store)
    reranker = reranker_of(f"{method}(smollm2, words=8)@{DEPTH}", llm, card=CARD, prompts=tmp_path / "prompts")
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


# One of each kind: an order, a score, a likelihood of a word, and the likelihoods of labels.
FORMS = {
    "rankgpt(smollm2, window=2, step=1)": ("rankgpt", "{query}\n{passages}\nOrder, such as [2] > [1]:", 1),
    "retro-star-8b(smollm2)": ("retro-star", "{query}\n{passages}\nA score, such as <score>50</score>:", 2),
    "rank1-7b(smollm2)": ("rank1", "<<completion>>\nQuery: {query}\nPassage: {passages}\n<think>", 4),
    "first-7b(smollm2, window=2, step=1)": ("first", "<<completion>>\n{query}\n{passages}\nBest: [", 1),
}


@pytest.mark.parametrize("spec", FORMS)
def test_each_form_of_a_trained_reranker_runs_with_a_real_llm(small, smollm2, tmp_path, spec):
    prompt, text, calls = FORMS[spec]
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / f"{prompt}.txt").write_text(text)
    store = Store(tmp_path / "store")
    asked = [SearchQuery(query) for query in small.queries]
    run = BM25().search(small, asked, DEPTH, ONE_THREAD.with_store(store)).run
    llm = JournaledChat(CARD, smollm2, store)
    reranker = reranker_of(f"{spec}@{DEPTH}", llm, card=CARD, prompts=tmp_path / "prompts")
    first = reranker.rerank(small, asked, run, store)
    assert first.cost.calls == calls and sorted(first.run.rows[0]) == sorted(run.rows[0])
    if spec.startswith("first"):  # the probabilities of letters are there whatever the model writes
        assert first.failures == 0
    again = reranker.rerank(small, asked, run, store)
    assert again.run.rows.tolist() == first.run.rows.tolist() and again.cost == first.cost
