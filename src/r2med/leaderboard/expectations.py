"""What runs are expected to give: the published rows that this package can run, and figures of other toolkits."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

from r2med.core.cards import read_toml, validated
from r2med.data.dataset_cards import groups
from r2med.leaderboard.published import PublishedRow, published

MEASURE = "nDCG@10"
"""The measure of the published rows and of averages."""

TOLERANCES = {"words": (0.01, 0.1), "vectors": (0.1, 1.0), "llm": (1.0, 3.0)}
"""How many points our run of a published row may be off, to be OK and to be near.

BM25 computes what the benchmark computed. Models differ between devices and precisions in near ties. An LLM that is
asked again answers otherwise.
"""


class Expectation(BaseModel):
    """Figures, × 100, that a system must give on some datasets, and who says so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    label: str = ""
    """What the source calls the system, as one would type it."""
    source: str
    seen_with: str = ""
    """The release or the paper that had the figures."""
    conditions: tuple[str, ...] = ()
    """What else the figures depend on, and what is known to be other than in our run."""
    recorded: bool = False
    """Whether the generated texts are those that the benchmark recorded."""
    values: dict[str, dict[str, float]]
    """Dataset -> measure -> figure."""
    average: float | None = None
    """The mean over all of the datasets, of the benchmark's own measure."""
    ok: float
    near: float

    @property
    def data(self) -> str:
        """The datasets as one types them."""
        return _typed(list(self.values))

    def command(self, datasets: Sequence[str] = ()) -> str:
        """Return the command that gives the figures, on all datasets or on some."""
        data = _typed(datasets) if datasets else self.data
        recorded = ["--recorded"] if self.recorded else []
        return shlex.join(["r2med", "run", self.system, "--data", data, *recorded])


def _typed(datasets: Sequence[str]) -> str:
    group = next((group for group, names in groups().items() if set(names) == set(datasets)), None)
    return group or ",".join(datasets)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    expectation: tuple[Expectation, ...]


@cache
def expectations() -> tuple[Expectation, ...]:
    """Return all that is expected: the package's own file first, then the published rows."""
    file = resources.files("r2med.leaderboard") / "expectations.toml"
    own = validated(_File, read_toml(file), file).expectation
    return (*own, *(_of_row(row) for row in published() if row.system))


def _of_row(row: PublishedRow) -> Expectation:
    [last] = row.calls[-1]
    judged = bool(last.arguments)  # only an LLM that reranks stands last with its name
    ok, near = TOLERANCES["llm" if judged else "words" if last.name == "bm25" else "vectors"]
    limit = f"texts are cut at {row.max_length:,} tokens" if row.max_length else ""
    return Expectation(
        system=row.system,
        label=row.name,
        source=row.source,
        seen_with=row.reported_by,
        conditions=tuple(filter(None, (limit, row.differs, row.note))),
        recorded=bool(row.expansion),
        values={name: {MEASURE: score} for name, score in row.scores.items()},
        average=row.average,
        ok=ok,
        near=near,
    )
