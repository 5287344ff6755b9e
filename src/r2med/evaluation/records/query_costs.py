"""The cost of one query of a system: dollars, tokens, and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.evaluation.records.record import Record
from r2med.foundation.core.cost import total


@dataclass(frozen=True)
class QueryCost:
    """The cost of one query, without the preparation of the corpus. Unknown values are None."""

    dollars: float | None = None
    """Mean dollars of a query."""
    tokens: float | None = None
    """Mean number of tokens that LLMs read and write for a query."""
    seconds: float | None = None
    """Mean seconds from a query to its ranking."""
    p95: float | None = None
    """Seconds within which 95 % of the queries are answered, on the slowest dataset."""


def query_cost(records: Sequence[Record]) -> QueryCost:
    """Return the cost of a query from a system's records on some datasets. All is unknown if one record knows none."""
    if not records or not all(record.cost_is_known for record in records):
        return QueryCost()
    spent = total(stage.cost for record in records for stage in record.stages)
    queries = max(1, sum(record.dataset.queries for record in records))
    return QueryCost(
        dollars=None if spent.unpriced else spent.dollars / queries,
        tokens=spent.llm_tokens / queries,
        seconds=sum((record.seconds_per_query or 0.0) * record.dataset.queries for record in records) / queries,
        p95=max(record.latency(0.95) or 0.0 for record in records),
    )
