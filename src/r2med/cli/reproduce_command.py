"""`r2med reproduce`: run systems with known scores, and report if the scores are reproduced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.spec import joined_words

if TYPE_CHECKING:
    from r2med.foundation.pages.cells import Tone
    from r2med.foundation.pages.page import Section, Table
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.publication.leaderboard.expectations import Expectation
    from r2med.publication.leaderboard.published import PublishedRow
    from r2med.publication.leaderboard.reproduction import Reproduction, Verdict


@flags.with_runtime(*flags.WEIGHTS, "base_url", "generations", *flags.TRACE)
def reproduce(
    systems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Systems, e.g. bm25 or 'hyde(o3-mini) → nv'. Default: all that is known on the data.",
            show_default=False,
            autocompletion=completion.systems,
        ),
    ] = None,
    data: flags.Data = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Show all known scores, and published rows that cannot be run. Run nothing.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--plan", help="Print commands and expected scores. Run nothing.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for records and runs.")] = Path("results"),
    form: Format = "text",
    as_json: flags.AsJSON = False,
    *,
    runtime: Runtime,
) -> None:
    """Compare our scores with published ones: OK, near or off. Without --data: the known scores on the demo."""
    from r2med.foundation.pages.page import Page, table_page
    from r2med.publication.leaderboard.reproduction import known_scores
    from r2med.publication.leaderboard.reproduction import reproduce as compare

    names = joined_words(systems or [])
    if list_:
        expected, others = known_scores(names or [""])
        value = [{**each.model_dump(mode="json"), "command": each.command()} for each in expected]
        value += [_not_runnable_value(row) for row in others]
        tables = [*([_expected(expected)] if expected else []), *([_not_runnable(others)] if others else [])]
        show_page(table_page("Expected scores", *tables), form, as_json, value)
        return
    if not dry_run:
        flags.check_writable(out)
    outcomes = compare(names, flags.dataset_names(data), results=out, setup=runtime, dry_run=dry_run)
    value = [{**outcome.model_dump(mode="json"), "verdict": outcome.verdict} for outcome in outcomes]
    show_page(Page("Reproduction of known scores", list(map(_section, outcomes))), form, as_json, value)
    if any(outcome.verdict == "off" or outcome.errors for outcome in outcomes):
        raise typer.Exit(1)


def _expected(expected: Sequence[Expectation]) -> Table:
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table
    from r2med.publication.leaderboard.expectations import MEASURE

    rows = []
    for each in expected:
        scores = [pair for values in each.values.values() for pair in values.items()]
        measure, score = scores[0] if scores else (MEASURE, None)
        shown = score if each.average is None else each.average
        rows.append((each.system, each.data, measure, shown, f"± {each.ok:g}", each.source))
    numbers = (Column("expected", "score"), Column("OK", "number"))
    texts = (Column("system"), Column("data", whole=True), Column("measure", whole=True))
    return Table((*texts, *numbers, Column("source")), rows)


def _not_runnable(rows: Sequence[PublishedRow]) -> Table:
    """Return the published rows that r2med cannot run, with the reasons."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    columns = (Column("published row"), Column("average", "score"), Column("why it cannot be run"), Column("source"))
    cells = [(row.name, row.average, row.reason, row.source) for row in rows]
    return Table(columns, cells, "Published rows that cannot be run")


def _not_runnable_value(row: PublishedRow) -> dict[str, object]:
    """Return such a row for JSON, with the keys of an expectation that it has."""
    known = {"label": row.name, "source": row.source, "seen_with": row.reported_by, "average": row.average}
    return {"system": "", **known, "command": "", "reason": row.reason}


def _section(outcome: Reproduction) -> Section:
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Section, Table

    expectation = outcome.expectation
    facts = {
        "command": outcome.command,
        "source": f"{expectation.source} ({expectation.seen_with})",
        "condition": "; ".join((*outcome.remarks, *expectation.conditions)),
        "tolerance": f"OK within {expectation.ok:g} points, near within {expectation.near:g}",
        "versions": ", ".join(f"{name} {version}" for name, version in outcome.versions.items()),
        "not run": "; ".join(outcome.errors),
    }
    rows = [
        (figure.dataset, figure.measure, figure.expected, figure.observed, figure.verdict) for figure in outcome.figures
    ]
    scores = [Column(head, "score", missing="") for head in ("expected", "observed")]
    table = Table((Column("dataset"), Column("measure"), *scores, Column("verdict")), rows)
    lines = [f"  {name}: {fact}" for name, fact in facts.items() if fact]
    verdict = outcome.verdict
    return Section(f"{expectation.system}:", [*lines, table], aside=verdict, aside_tone=TONES[verdict])


TONES: Mapping[Verdict, Tone] = {
    "OK": "good",
    "near": "warning",
    "off": "error",
    "not comparable": "quiet",
    "not run": "quiet",
}
