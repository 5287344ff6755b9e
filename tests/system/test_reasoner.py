"""The preset `reasoner`: run through an LLM that knows much but errs, it beats each of its parts alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from r2med import System, evaluate, load
from r2med.data import Dataset
from r2med.llm.contracts import ChatModel
from r2med.setup import Setup
from r2med.store import Store
from support.scripted_reasoner import ScriptedReasoner

DATASETS = ("demo/MedQA-Diag", "demo/Medical-Sciences")


def with_model(system: System, llm: ChatModel) -> System:
    """Return the system with every LLM in it replaced."""
    opened = {
        "_expander": replace(system._expander, llm=llm) if hasattr(system._expander, "llm") else system._expander,
        "_rerankers": tuple(replace(one, llm=llm) if hasattr(one, "llm") else one for one in system._rerankers),
    }
    vars(system).update(opened)
    return system


@pytest.fixture(scope="module")
def module_store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def mean(module_store: Store) -> Callable[[str], float]:
    datasets = [load(name, module_store) for name in DATASETS]
    judges = {dataset.name: ScriptedReasoner(dataset, module_store) for dataset in datasets}

    def one(spec: str, dataset: Dataset) -> float:
        system = with_model(System.parse(spec, Setup(store=module_store)), judges[dataset.name])
        return evaluate(system, dataset, store=module_store).mean["nDCG@10"]

    return lambda spec: sum(one(spec, dataset) for dataset in datasets) / len(datasets)


PARTS = [
    "bm25",
    "minilm",
    "bm25+minilm",
    "hyde(gpt4, rounds=1) → bm25",
    "hyde(gpt4, rounds=1) → minilm",
    "hyde(gpt4, rounds=1) → bm25+minilm",
    "hyde(gpt4, rounds=1) → fuse(bm25+minilm, queries=both)",
    "reasoner(gpt4, dense=minilm, rerank=groupwise(gpt4, weight=0)@20)",
    "bm25 → groupwise(gpt4, shuffles=2)@20",
    "minilm → groupwise(gpt4, shuffles=2)@20",
    "bm25+minilm → groupwise(gpt4, shuffles=2)@20",
]


def test_the_whole_beats_each_of_its_parts(mean: Callable[[str], float]) -> None:
    whole = mean("reasoner(gpt4, dense=minilm, depth=20)")
    parts = {spec: mean(spec) for spec in PARTS}
    assert whole > max(parts.values()), f"{whole:.4f} of {parts}"


def test_its_record_tells_what_every_stage_took(module_store: Store) -> None:
    dataset = load("demo/MedQA-Diag", module_store)
    spec = "reasoner(gpt4, dense=minilm, depth=20, shuffles=1)"
    system = with_model(System.parse(spec, Setup(store=module_store)), ScriptedReasoner(dataset, module_store))
    record = evaluate(system, dataset, store=module_store)
    expansion, search, rerank = record.stages
    queries = len(dataset.queries)
    assert (expansion.cost.calls, rerank.cost.calls) == (2 * queries, queries)
    assert record.cost.llm_tokens == 15 * 3 * queries and record.cost.calls == 3 * queries
    assert record.cost.dollars == pytest.approx(expansion.cost.dollars + rerank.cost.dollars)
    assert record.cost.encoder_seconds > 0 and search.cost.seconds > 0
    total = expansion.cost.seconds + search.cost.seconds + rerank.cost.seconds
    assert record.seconds_per_query == pytest.approx(total / queries)
    assert record.seeds["rerank 1"] == 42 and record.system == system.name
