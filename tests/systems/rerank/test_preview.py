"""The preview of a reranker counts the calls of a real run without making them."""

import pytest

from r2med import System, load
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store


@pytest.mark.parametrize(
    ("reranker", "calls"),
    [("groupwise(gpt4, shuffles=2)@50", 2 * 3), ("listwise(gpt4)@50", 4), ("pointwise(gpt4, samples=2)@5", 10)],
)
def test_the_preview_counts_the_calls_of_a_real_run(tmp_path, reranker, calls):
    runtime, dataset = Runtime(store=Store(tmp_path)), load("demo/Biology")
    [stage] = System.parse(f"bm25 → {reranker}", runtime).asking.values()
    asked = stage.preview(dataset, runtime).requests
    assert len(asked) == calls * len(dataset.queries)
    texts = [request.messages[-1].content for request in asked]
    assert all(any(query.text in text for text in texts) for query in dataset.queries)
