"""docs/expected.md: the command of every known score, and the score that it must give."""

from __future__ import annotations

from collections.abc import Iterable

from generators.markdown import NOTICE, code, table
from r2med.publication.leaderboard.expectations import MEASURE, Expectation, expectations
from r2med.publication.leaderboard.published import published

HEAD = """# Expected scores

Every command whose score is known, the score × 100 that it must give, and who reported it. A score is OK if ours
differs from it by no more than the points after "±" ([how near is near](reproduce.md#how-near-is-near)).
[`r2med reproduce`](reproduce.md) runs the commands and compares the scores. With `--plan` it shows the score of each
dataset and the conditions.
"""

DATA = {
    "demo": "## The demo\n\nThese need no network, no GPU and no key.",
    "R2MED": "## R2MED\n\nThe published rows that r2med can run: averages over the eight datasets.",
}
"""Datasets, as typed -> the heading of their table, and a sentence on them."""

OTHERS = "## Other datasets\n\nScores of other toolkits."

NOT_RUNNABLE = "## Rows that cannot be run\n\nPublished averages over the eight datasets, and why there is no command."


def page() -> str:
    """Return the page."""
    of_data: dict[str, list[Expectation]] = {}
    for each in expectations():
        of_data.setdefault(each.data if each.data in DATA else "", []).append(each)
    tables = [_section(heading, of_data[data]) for data, heading in {**DATA, "": OTHERS}.items()]
    others = [(code(row.name), _points(row.average), row.reason, row.source) for row in published() if not row.system]
    heads = ("published row", MEASURE, "why", "source")
    return "".join((HEAD, *tables, f"\n{NOT_RUNNABLE}\n\n{table(heads, others)}", NOTICE))


def _section(heading: str, expected: Iterable[Expectation]) -> str:
    rows = [(code(each.command()), _score(each), f"± {each.ok:g}", each.source) for each in expected]
    return f"\n{heading}\n\n" + table(("command", "score", "OK", "source"), rows)


def _score(expected: Expectation) -> str:
    """Return the average; without one, every score of the only dataset."""
    if expected.average is not None:
        return f"{MEASURE} {_points(expected.average)}"
    [scores] = expected.values.values()
    return ", ".join(f"{measure} {_points(score)}" for measure, score in scores.items())


def _points(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"
