"""`r2med score`: any TREC run file against any qrels file, exact to pytrec_eval and trec_eval -c."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.cli import options as flags


def score(
    qrels: Annotated[Path, typer.Option(help="Judgements: TREC, TSV or JSON Lines.", show_default=False)],
    run: Annotated[Path, typer.Option(help="A TREC run file, gzipped or not.", show_default=False)],
    as_json: flags.AsJSON = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="Also print every query's scores.")] = False,
    doubles: Annotated[
        bool,
        typer.Option(
            "--doubles",
            help="Compare scores as doubles, as trec_eval 10 does; else as floats, as up to 9.0.8.",
        ),
    ] = False,
) -> None:
    """Score a run file. A judged query that the run lacks counts 0."""
    from r2med.cli.console import print_json
    from r2med.core.errors import UserError
    from r2med.data.qrels_file import read_qrels
    from r2med.measure import score as compute
    from r2med.retrieve.trec import read_judged_run

    if not qrels.is_file():
        raise UserError(f"{qrels}: no such qrels file")
    judgements = read_qrels(qrels)
    if not judgements:
        raise UserError(f"{qrels} holds no judgements: nothing can be scored")
    ranking = read_judged_run(run, judgements, doubles)
    if not set(ranking.queries) & set(judgements):
        raise UserError(f"{run} and {qrels} have no query in common: are they of the same dataset?")
    scores = compute(judgements, ranking)
    mean = {str(measure): value for measure, value in scores.mean.items()}
    each = {q: {str(m): v for m, v in values.items()} for q, values in scores.per_query.items()}
    if as_json:
        print_json({"mean": mean, **({"per_query": each} if per_query else {})})
        return
    _print_table(f"mean of {len(each)} queries", mean)
    if per_query:
        for query, values in each.items():
            _print_table(f"query {query}", values)


def _print_table(title: str, values: dict[str, float]) -> None:
    from r2med.cli.console import console, plain
    from r2med.cli.figures import Figures

    families: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        family, _, cutoff = name.partition("@")
        families.setdefault(family, {})[cutoff] = value
    cutoffs = list(families["nDCG"])
    rows = []
    for by_cutoff in families.values():
        shown = [by_cutoff[""]] if "" in by_cutoff else [by_cutoff[cutoff] for cutoff in cutoffs]
        rows.append([plain(f"{value:.4f}") for value in shown] + [plain("")] * (len(cutoffs) - len(shown)))
    output = console()
    output.print(plain(title, "bold"))
    Figures("", [f"@{cutoff}" for cutoff in cutoffs], rows).print(output, list(families))
    output.print()
