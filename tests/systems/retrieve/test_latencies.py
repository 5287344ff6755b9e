"""Latencies that can be compared: after a warm-up, on the same queries, and never less than those of the parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from r2med.data import load
from r2med.data.dataset import Query
from r2med.data.runs.run import Run
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.cost import Cost, added_latencies
from r2med.foundation.store import Store
from r2med.systems.retrieve.retriever import (
    TIMED_QUERIES,
    WARM_UP_QUERIES,
    Searched,
    Searcher,
    SearchQuery,
    timed_queries,
)

SHARES = (0.5, 0.95)


@pytest.mark.parametrize("sizes", [(32, 32), (32, 5), (3, 7, 20), (1,)])
def test_every_quantile_of_a_sum_is_at_least_the_sum_of_those_of_its_parts(sizes: tuple[int, ...]) -> None:
    parts = [[((7 * number) % size + 1) / size for number in range(size)] for size in sizes]
    whole = Cost(latencies=added_latencies(parts))
    for share in SHARES:
        alone = sum(Cost(latencies=tuple(part)).latency(share) for part in parts)
        assert whole.latency(share) >= alone - 1e-12
        if len({*sizes}) == 1:
            assert whole.latency(share) == pytest.approx(alone)


def test_a_part_that_was_not_timed_leaves_the_whole_unknown() -> None:
    assert added_latencies([[1.0, 2.0], []]) == added_latencies([]) == ()


class Counting(Searcher):
    """A searcher that notes which queries it was asked, one by one."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        self.asked += [query.query.id for query in queries]
        return Searched(Run.of({query.query.id: {} for query in queries}))


def test_every_system_is_timed_on_the_same_queries_after_a_warm_up() -> None:
    queries = [SearchQuery(Query(str(number), "text")) for number in range(100)]
    expanded = [SearchQuery(each.query, ("more",)) for each in queries]
    one, other = Counting(), Counting()
    assert len(one.latencies(queries, 10)) == len(other.latencies(expanded, 10)) == TIMED_QUERIES
    assert one.asked == other.asked
    chosen = [query.query.id for query in timed_queries(queries)]
    assert one.asked == [*chosen[:WARM_UP_QUERIES], *chosen]


PARTS = ("bm25", "bm25(scorer=lucene)")


@pytest.mark.parametrize("order", [("+".join(PARTS), *PARTS), (*PARTS, "+".join(PARTS))], ids=["first", "last"])
def test_a_fusion_is_never_shown_as_faster_than_its_parts(store: Store, order: tuple[str, ...]) -> None:
    dataset = load("demo/Biology")
    made: dict[str, Record] = {system: evaluate(system, dataset, None, store=store) for system in order}
    fused = made.pop("+".join(PARTS))
    for share in SHARES:
        assert (fused.latency(share) or 0) > sum(record.latency(share) or 0 for record in made.values()) > 0


def test_a_record_says_how_it_was_timed_and_an_older_one_does_not(store: Store) -> None:
    dataset = load("demo/Biology")
    record = evaluate("bm25", dataset, None, store=store)
    timed = len(timed_queries(dataset.queries))
    assert record.timing == f"retrieve: {timed} queries one at a time, after a warm-up"
    older = record.model_copy(update={"stages": (record.stages[0].model_copy(update={"timing": ""}),)})
    assert older.timing == "not stated"
