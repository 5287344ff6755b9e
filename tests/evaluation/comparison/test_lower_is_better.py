"""Systems compared by a measure whose lower values are better."""

from __future__ import annotations

from collections.abc import Sequence

from r2med.evaluation.comparison import verdicts
from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.report_tables import score_table
from r2med.evaluation.records.record import Record
from r2med.foundation.pages.cells import Marked
from support.records import collection, record


def with_error(system: str, errors: Sequence[float]) -> Record:
    made = record(system, "Biology", [0.5] * len(errors))
    per_query = {query: {"brier": error} for query, error in zip(made.per_query, errors, strict=True)}
    return made.model_copy(update={"mean": {"brier": sum(errors) / len(errors)}, "per_query": per_query})


def test_the_system_with_the_lower_error_is_better_in_every_order() -> None:
    safe, risky = with_error("safe", [0.1, 0.2] * 20), with_error("risky", [0.4, 0.5] * 19 + [0.0, 0.1])
    for given in ([safe, risky], [risky, safe]):
        compared = comparison(collection(given), "brier", resamples=500)
        (pair,) = compared.pairs
        assert [standing.system for standing in compared.ranked] == ["safe", "risky"]
        assert {system: mark.letters for system, mark in compared.marks.items()} == {"safe": "a", "risky": "b"}
        assert [(mark.better, mark.worse) for mark in compared.marks.values()] == [(1, 0), (0, 1)]
        text = verdicts.verdict(pair, lower_is_better=True)
        assert text.startswith("safe is better than risky: −28.00 points (95 % interval −3")
        assert verdicts.wins_and_losses(pair, lower_is_better=True) == "Wins 38, ties 0, losses 2."
        rows = {row[0]: row[1] for row in score_table(compared).rows}
        assert isinstance(rows["safe"], Marked)
        assert rows["safe"].bold
        assert compared.heading == "brier × 100, lower is better"
