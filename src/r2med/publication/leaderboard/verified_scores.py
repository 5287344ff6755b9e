"""Verified scores: known scores that we computed again ourselves, in the file docs/verified.json of the repository.

`r2med reproduce --verified FILE` writes it. `python docs/make_reference.py` copies it into this folder, so that every
board shows it, and writes what it says into the README and the docs. Without the file, nothing was run by us yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from r2med.data.dataset_cards import BENCHMARK, groups
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import write_json
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted
from r2med.publication.leaderboard.expectations import Expectation
from r2med.publication.leaderboard.reproduction import AVERAGE, WORST, Figure, Reproduction

NOT_YET = "not yet run by us on the eight datasets"

FILE = Path(__file__).with_name("verified.json")


class VerifiedScores(BaseModel):
    """Known scores beside those that we computed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    """The number of this format."""
    created: str
    """The day on which the last of them was computed, as 2026-11-30."""
    rows: tuple[Reproduction, ...]

    @classmethod
    def of(cls, outcomes: Sequence[Reproduction]) -> VerifiedScores:
        """Return the scores of today's reproductions."""
        return cls(created=datetime.now(UTC).date().isoformat(), rows=tuple(outcomes))

    @classmethod
    def read(cls, path: Path | None = None) -> VerifiedScores | None:
        """Read a file, by default that of this package. None if there is none.

        Raises UserError if `r2med reproduce` did not write it.
        """
        path = path or FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError):
            raise UserError(
                f"{path} does not contain verified scores: r2med reproduce --verified {quoted(path)}"
            ) from None

    def write(self, path: Path) -> None:
        """Write the file. It replaces an older one."""
        write_json(path, self.model_dump(mode="json"))

    @property
    def whole(self) -> list[Reproduction]:
        """The rows on datasets of the benchmark that have all of their scores."""
        members = set(groups()[BENCHMARK])
        return [row for row in self.rows if members >= set(row.expectation.values) and _is_whole(row)]

    @property
    def statement(self) -> str:
        """What we ran, in one sentence."""
        if not (rows := self.whole):
            return NOT_YET
        counts = Counter(row.verdict for row in rows)
        verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in reversed(WORST) if counts[verdict])
        version = rows[0].versions.get("r2med", "")
        published = counted(len(rows), "published row")
        return f"r2med {version} computed {published} on the eight datasets ({self.created}): {verdicts}"

    def row(self, expectation: Expectation) -> Reproduction | None:
        """Return the row of an expectation, if we ran it."""
        return next((row for row in self.whole if _key(row.expectation) == _key(expectation)), None)


def _key(expectation: Expectation) -> tuple[str, ...]:
    return expectation.system, expectation.label, expectation.source, expectation.seen_with


def _is_whole(row: Reproduction) -> bool:
    expected = row.expectation
    scored = {name for name, values in expected.values.items() if values}
    observed = {figure.dataset for figure in row.figures if figure.observed is not None}
    return observed >= scored | ({AVERAGE} if expected.average is not None else set())


def main_figure(row: Reproduction) -> Figure:
    """Return the score that a table shows: the average, or the first."""
    return next((each for each in row.figures if each.dataset == AVERAGE), row.figures[0])
