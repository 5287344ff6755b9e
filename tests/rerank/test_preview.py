"""A dry run of a reranker asks as often as the real thing, and nobody."""

import pytest

from r2med import System, load
from r2med.runtime.setup import Setup
from r2med.store import Store


@pytest.mark.parametrize(
    ("reranker", "calls"),
    [("groupwise(gpt4, shuffles=2)@50", 2 * 3), ("listwise(gpt4)@50", 4), ("pointwise(gpt4, samples=2)@5", 10)],
)
def test_as_many_calls_as_there_will_be(tmp_path, reranker, calls):
    store, dataset = Store(tmp_path), load("demo/Biology")
    [stage] = System.parse(f"bm25 → {reranker}", Setup(store=store)).asking.values()
    asked = stage.preview(dataset, store).requests
    assert len(asked) == calls * len(dataset.queries)
    texts = [request.messages[-1].content for request in asked]
    assert all(any(query.text in text for text in texts) for query in dataset.queries)
