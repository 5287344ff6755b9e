"""The preset `reasoner`, run through an LLM behind a server on loopback."""

import json
import re
from collections.abc import Callable, Iterator

import pytest

from r2med import System, evaluate, load
from r2med.data import Dataset
from r2med.evaluation.records.record import Record
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from support import chat_server
from support.chat_server import Exchange, Server
from support.datasets import with_short_documents

REASONER = "reasoner(gpt4, dense=minilm, depth=25)"
SEARCH = (
    "hyde(gpt4, rounds=1) → fuse(bm25+bm25+minilm+minilm, queries=expanded:original:expanded:original, weights=3:1:3:1)"
)
"""The same without its last stage."""

_QUERY = re.compile(r"<query>\n(.*?)\n</query>", re.DOTALL)
_PASSAGE = re.compile(r"<passage (\d+)>\n(.*?)\n</passage \1>", re.DOTALL)

Judge = Callable[[str, str], float]
"""(query, passage) -> from 0 to 10."""


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def dataset(module_store: Store) -> Dataset:
    return with_short_documents(load("demo/MedQA-Diag", module_store), 250)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with chat_server.serve() as running:
        yield running


def truth(dataset: Dataset) -> Judge:
    """Return a judge who knows which passages are relevant."""
    relevant = {
        (flat(query.text), flat(text)[:200])
        for query in dataset.queries
        for name, text in dataset.corpus
        if dataset.qrels.get(query.id, {}).get(name, 0) > 0
    }
    return lambda query, passage: 10 if (flat(query), flat(passage)[:200]) in relevant else 0


def run(spec: str, server: Server, judge: Judge, dataset: Dataset, module_store: Store) -> Record:
    """Evaluate a system whose LLM writes a text of little use, and judges as it is told."""

    async def step(exchange: Exchange) -> None:
        prompt = exchange.request.question
        reply = "Angina, asthma and anaemia are common."
        if query := _QUERY.search(prompt):
            reply = json.dumps({number: judge(query[1], passage) for number, passage in _PASSAGE.findall(prompt)})
        await chat_server.answer(reply)(exchange)

    server.otherwise = step
    return evaluate(System.parse(spec, Setup(base_url=server.address, store=module_store)), dataset, store=module_store)


@pytest.mark.slow
def test_a_judge_who_knows_the_truth_puts_every_relevant_candidate_first(
    server: Server, dataset: Dataset, module_store: Store
) -> None:
    record = run(REASONER, server, truth(dataset), dataset, module_store)
    found = {query: scores["R@25"] for query, scores in record.per_query.items()}
    assert 0 < sum(found.values()) < len(found)  # the search alone does not find all, nor nothing
    for query, scores in record.per_query.items():
        assert scores["R@10"] == found[query]
        assert (scores["MRR"] == 1) == (found[query] > 0)


@pytest.mark.slow
def test_a_judge_without_an_opinion_leaves_what_the_search_found(
    server: Server, dataset: Dataset, module_store: Store
) -> None:
    whole = run(REASONER, server, lambda query, passage: 5, dataset, module_store)
    assert whole.per_query == run(SEARCH, server, lambda query, passage: 5, dataset, module_store).per_query


@pytest.mark.slow
def test_its_record_tells_what_every_stage_took(server: Server, dataset: Dataset, module_store: Store) -> None:
    record = run(f"{REASONER[:-1]}, shuffles=1)", server, lambda query, passage: 5, dataset, module_store)
    expansion, search, rerank = record.stages
    queries = len(dataset.queries)
    # A text and its refinement, and two groups of the 25 candidates.
    assert (expansion.cost.calls, rerank.cost.calls) == (2 * queries, 2 * queries)
    assert record.cost.calls == 4 * queries
    assert record.cost.llm_tokens == expansion.cost.llm_tokens + rerank.cost.llm_tokens > 0
    assert record.cost.dollars == pytest.approx(expansion.cost.dollars + rerank.cost.dollars)
    assert record.cost.encoder_seconds > 0 and search.cost.seconds > 0
    total = expansion.cost.seconds + search.cost.seconds + rerank.cost.seconds
    assert record.seconds_per_query == pytest.approx(total / queries)
    assert record.seeds["rerank 1"] == 42
