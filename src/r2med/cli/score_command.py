"""`r2med score`: score a TREC run file against a qrels file, exact to pytrec_eval and trec_eval -c."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Table


def score(
    qrels: Annotated[Path, typer.Option(help="Judgements: TREC, TSV or JSON Lines.", show_default=False)],
    run: Annotated[Path, typer.Option(help="A TREC run file, gzipped or not.", show_default=False)],
    aspects: Annotated[
        Path | None,
        typer.Option(
            help="Aspects of the answers, a file like aspects.jsonl: also compute alpha-nDCG and A-Recall.",
            show_default=False,
        ),
    ] = None,
    form: Format = "text",
    as_json: flags.AsJSON = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also print every query's scores.")] = False,
) -> None:
    """Score a run file. A judged query that the run lacks counts 0."""
    from r2med.evaluation.measure.score_inputs import score as compute
    from r2med.foundation.pages.page import Page, Section

    scores = compute(qrels, run, aspects=aspects)
    mean = {str(measure): value for measure, value in scores.mean.items()}
    each = {q: {str(m): v for m, v in values.items()} for q, values in scores.per_query.items()}
    sections = [Section(f"mean of {counted(len(each), 'query', 'queries')}", [_table(mean)])]
    if per_query:
        sections += [Section(f"query {query}", [_table(values)]) for query, values in each.items()]
    value = {"mean": mean, **({"per_query": each} if per_query else {})}
    show_page(Page(f"Scores of {run.name}", sections), form, as_json, value)


def _table(values: dict[str, float]) -> Table:
    from r2med.foundation.pages.cells import Column, Value
    from r2med.foundation.pages.page import Table

    families: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        family, _, cutoff = name.partition("@")
        families.setdefault(family, {})[cutoff] = value
    cutoffs = list(families["nDCG"])
    rows: list[list[Value]] = []
    for family, by_cutoff in families.items():
        known = [by_cutoff[""]] if "" in by_cutoff else [by_cutoff.get(cutoff) for cutoff in cutoffs]
        rows.append([family, *known, *[None] * (len(cutoffs) - len(known))])
    columns = [Column(f"@{cutoff}", "number", 4, missing="") for cutoff in cutoffs]
    return Table((Column(""), *columns), rows)
