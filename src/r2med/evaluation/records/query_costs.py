"""The cost of one query of a system: dollars, tokens, and seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from r2med.evaluation.records.record import Record
from r2med.foundation.core.cost import Cost, total


@dataclass(frozen=True)
class QueryCost:
    """The cost of one query, without the preparation of the corpus. Unknown values are None."""

    dollars: float | None = None
    """Mean dollars of a query."""
    tokens: float | None = None
    """Mean number of tokens that LLMs read and write for a query."""
    seconds: float | None = None
    """Mean seconds from a query to its ranking."""


def query_cost(records: Sequence[Record]) -> QueryCost:
    """Return the cost of a query from a system's records on some datasets. All is unknown if one record knows none.

    Repeats on a dataset count as their mean.
    """
    if not records or not all(record.cost_is_known for record in records):
        return QueryCost()
    runs: dict[str, list[Record]] = {}
    for record in records:
        runs.setdefault(record.dataset.name, []).append(record)
    spent = total(cost for repeats in runs.values() for cost in _stage_costs(repeats))
    queries = max(1, sum(repeats[0].dataset.queries for repeats in runs.values()))
    seconds = (fmean(record.seconds_per_query or 0.0 for record in repeats) for repeats in runs.values())
    sizes = (repeats[0].dataset.queries for repeats in runs.values())
    return QueryCost(
        dollars=None if spent.unpriced else spent.dollars / queries,
        tokens=spent.llm_tokens / queries,
        seconds=sum(each * size for each, size in zip(seconds, sizes, strict=True)) / queries,
    )


def _stage_costs(repeats: Sequence[Record]) -> list[Cost]:
    """Return the costs of the stages of one run: the means over the repeats."""
    if len(repeats) == 1:
        return [stage.cost for stage in repeats[0].stages]
    return [total(stage.cost for record in repeats for stage in record.stages).times(1 / len(repeats))]
