"""What is told of approximate searches, wherever scores are shown."""

from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.report_tables import score_table
from r2med.evaluation.records.approximate_searches import approximate_searches
from r2med.systems.retrieve.retriever import Approximation
from support.records import collection, record


def searched(recall, dataset="mine", system="m(index=hnsw)"):
    searches = (Approximation("m(index=hnsw)", "hnsw", {"links": 16, "ef": 200}, recall, 50, 2.0),)
    plain = record(system, dataset, [0.5, 0.25, 0.75])
    return plain.model_copy(update={"stages": (plain.stages[0].model_copy(update={"approximate": searches}),)})


def test_one_line_has_the_lowest_recall_and_what_measuring_took():
    one = searched({"recall@10": 0.99, "recall@100": 0.9})
    shares = "recall@10 0.990, recall@100 0.900 of exact search"
    line = f"m(index=hnsw) is approximate: {shares} (50 queries, measured in 2.0 s)"
    assert approximate_searches([one]) == [line]
    shared = one.model_copy(update={"system": "m(index=hnsw) → reranker"})
    assert approximate_searches([one, shared]) == [line]
    [line] = approximate_searches([one, searched({"recall@10": 1.0, "recall@100": 0.8}, "other")])
    assert "recall@10 0.990, recall@100 0.800 of exact search (the lowest of 2 samples of queries" in line
    assert approximate_searches([record("bm25", "mine", [0.5])]) == []


def test_an_agent_that_searches_approximately_is_told_too():
    plain = record("search-o1(m, by=m(index=hnsw)) → bm25", "mine", [0.5])
    settings = {"expand": {"stage": "search-o1", "by": {"stage": "m", "index": "hnsw"}}, "retrieve": {"stage": "bm25"}}
    [line] = approximate_searches([plain.model_copy(update={"settings": settings})])
    assert "whose recall was not measured" in line


def test_a_comparison_and_its_table_tell_it():
    compared = comparison(collection([searched({"recall@10": 0.99}), record("bm25", "mine", [0.5, 0.5, 0.5])]))
    assert "recall@10 0.990 of exact search" in score_table(compared).note
    assert "recall@10 0.990 of exact search" in compared.as_json()["notices"][0]
