"""What a family asks: larger samples and pointwise depths use the answers of smaller ones; groups do not."""

from __future__ import annotations

import pytest

import r2med
from r2med import Dataset
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.chat_server import Server, answer

QUERIES = {"1": "gout toe pain", "2": "gout uric acid"}
DATA = Dataset.of(
    QUERIES, {f"d{n}": f"gout {'toe ' * n} text {n}" for n in range(6)}, {"1": {"d0": 1}, "2": {"d1": 1}}, name="mine"
)


@pytest.mark.parametrize(
    ("system", "said", "calls"),
    [
        ("bm25 → pointwise(org/m)@{2,4}", "7", 4),
        ("bm25 → pointwise(org/m, samples={1,2})@{2,4}", "7", 8),
        ("hyde(org/m, samples={1,3}) → bm25", "A text.", 3),
        ("bm25 → groupwise(org/m)@{2,4}", '{"1": 7, "2": 5, "3": 2, "4": 1}', 1 + 1),
        ("bm25 → listwise(org/m, window=2, step=1)@{2,4}", "[2] > [1]", 1 + 3),
    ],
)
def test_a_family_asks_each_question_once(
    chat_server: Server, store: Store, system: str, said: str, calls: int
) -> None:
    chat_server.otherwise = answer(said)
    setup = Runtime(store=store, base_url=chat_server.address)
    results = r2med.run(system, DATA, out=None, setup=setup)
    assert results.complete
    questions = [request.question for request in chat_server.requests]
    assert len(questions) == len(QUERIES) * calls
