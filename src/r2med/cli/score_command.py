"""What `r2med score` shows: the mean of each measure, and the scores of each query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from r2med.cli.generated import Shown
from r2med.foundation.core.flags import Flag
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.evaluation.measure.scores import Scores
    from r2med.foundation.pages.page import Table


def show_scores(
    scores: Scores,
    run: str | Path,
    per_query: Annotated[bool, Flag("Also print every query's scores.")] = False,
) -> Shown:
    """Show the means and, if it is asked for, the scores of each query."""
    from r2med.foundation.pages.page import Page, Section

    mean = {str(measure): value for measure, value in scores.mean.items()}
    each = {q: {str(m): v for m, v in values.items()} for q, values in scores.per_query.items()}
    sections = [Section(f"mean of {counted(len(each), 'query', 'queries')}", [_table(mean)])]
    if per_query:
        sections += [Section(f"query {query}", [_table(values)]) for query, values in each.items()]
    value = {"mean": mean, **({"per_query": each} if per_query else {})}
    return Shown(Page(f"Scores of {Path(run).name}", sections), value)


def _table(values: dict[str, float]) -> Table:
    from r2med.foundation.pages.cells import Column, Value
    from r2med.foundation.pages.page import Table

    families: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        family, _, cutoff = name.partition("@")
        families.setdefault(family, {})[cutoff] = value
    cutoffs = list(dict.fromkeys(cutoff for each in families.values() for cutoff in each if cutoff))
    rows: list[list[Value]] = []
    for family, by_cutoff in families.items():
        known = [by_cutoff[""]] if "" in by_cutoff else [by_cutoff.get(cutoff) for cutoff in cutoffs]
        rows.append([family, *known, *[None] * (len(cutoffs) - len(known))])
    columns = [Column(f"@{cutoff}", "number", 4, missing="") for cutoff in cutoffs]
    return Table((Column(""), *columns), rows)
