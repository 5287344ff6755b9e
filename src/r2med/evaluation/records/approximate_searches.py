"""Lines for readers of scores about approximate searches: their recall against exact search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from r2med.evaluation.records.record import Record, declared_stages
from r2med.foundation.core.approximation import Approximation


def approximate_searches(records: Iterable[Record]) -> list[str]:
    """Return a line for each retriever with an approximate index: its lowest recall over the datasets."""
    measured: dict[tuple[str, ...], list[Approximation]] = {}
    others: dict[str, None] = {}
    for record in records:
        for each in (search for stage in record.stages for search in stage.approximate):
            # Systems may share a retriever, and an agent reads fewer documents than a search returns.
            if each not in (same := measured.setdefault((each.name, *each.recall), [])):
                same.append(each)
        # A record made before recall was measured, or an agent that did not search.
        searches = any("index" in stage for stage in declared_stages(record.settings.get("expand")))
        if searches and not record.stages[0].approximate:
            others[record.stages[0].name] = None
    unmeasured = "searches with an approximate index, whose recall was not measured"
    return [
        *(_line(name, searches) for (name, *_), searches in measured.items()),
        *(f"{name} {unmeasured}" for name in others),
    ]


def _line(name: str, searches: Sequence[Approximation]) -> str:
    first = searches[0]
    lowest = {cutoff: min(each.recall.get(cutoff, 1.0) for each in searches) for cutoff in first.recall}
    shares = ", ".join(f"{cutoff} {recall:.3f}" for cutoff, recall in lowest.items())
    sample = f"{first.sample} queries" if len(searches) == 1 else f"the lowest of {len(searches)} samples of queries"
    seconds = sum(each.seconds for each in searches)
    return f"{name} is approximate: {shares} of exact search ({sample}, measured in {seconds:.1f} s)"
