"""`r2med reproduce`: run a system whose figures are known, and say whether they came out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import completion
from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.leaderboard.expectations import Expectation
    from r2med.leaderboard.reproduction import Reproduction
    from r2med.runtime.setup import Setup


@flags.with_setup(*flags.WEIGHTS, "base_url", "generations")
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
    list_: Annotated[bool, typer.Option("--list", help="Show what is expected; run nothing.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print commands and figures; run nothing.")] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where records and runs go.")] = Path("results"),
    as_json: flags.AsJSON = False,
    *,
    setup: Setup,
) -> None:
    """Compare our figures with published ones: OK, near or off. Without --data: what is known on the demo."""
    from r2med.cli.console import print_json
    from r2med.core.spec import joined_words
    from r2med.leaderboard.reproduction import expected_of
    from r2med.leaderboard.reproduction import reproduce as compare

    names = joined_words(systems or [])
    if list_:
        expected = expected_of(names or [""])
        if as_json:
            print_json([{**each.model_dump(mode="json"), "command": each.command()} for each in expected])
        else:
            _show_list(expected)
        return
    if not dry_run:
        flags.check_writable(out)
    outcomes = compare(names, flags.dataset_names(data), results=out, setup=setup, dry_run=dry_run)
    if as_json:
        print_json([{**outcome.model_dump(mode="json"), "verdict": outcome.verdict} for outcome in outcomes])
    else:
        for outcome in outcomes:
            _show(outcome)
    if any(outcome.verdict == "off" or outcome.errors for outcome in outcomes):
        raise typer.Exit(1)


def _show_list(expected: Sequence[Expectation]) -> None:
    from r2med.cli.console import console, table

    rows = []
    for each in expected:
        measure, figure = next(iter(next(iter(each.values.values())).items()))
        shown = each.average if each.average is not None else figure
        rows.append((each.system, each.data, measure, f"{shown:.2f}", f"± {each.ok:g}", each.source))
    heads = ("system", "data", "measure", "expected", "OK", "source")
    console().print(table(heads, rows, numbers=("expected", "OK"), whole=("data", "measure")))


def _show(outcome: Reproduction) -> None:
    from r2med.cli.console import console, plain, table

    expectation, output = outcome.expectation, console()
    output.print(plain(f"{expectation.system}: ") + plain(outcome.verdict, STYLES[outcome.verdict]))
    facts = {
        "command": outcome.command,
        "source": f"{expectation.source} ({expectation.seen_with})",
        "condition": "; ".join(expectation.conditions),
        "tolerance": f"OK within {expectation.ok:g} points, near within {expectation.near:g}",
        "versions": ", ".join(f"{name} {version}" for name, version in outcome.versions.items()),
        "not run": "; ".join(outcome.errors),
    }
    for name, fact in facts.items():
        if fact:
            output.print(plain(f"  {name}: {fact}"))
    rows = [
        (figure.dataset, figure.measure, f"{figure.expected:.2f}", _points(figure.observed), figure.verdict)
        for figure in outcome.figures
    ]
    output.print(table(("dataset", "measure", "expected", "observed", "verdict"), rows, ("expected", "observed")))
    output.print()


STYLES = {"OK": "bold green", "near": "bold yellow", "off": "bold red", "not run": "dim"}


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
