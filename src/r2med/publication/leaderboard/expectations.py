"""Expected scores: published rows that r2med can run, and scores of other toolkits."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

from r2med.data.dataset_cards import BENCHMARK, groups
from r2med.foundation.core.names import read_toml, validated
from r2med.foundation.core.spec import parse
from r2med.publication.leaderboard.published import PublishedRow, published
from r2med.systems.expand.recorded import AUTHOR
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS

MEASURE = "nDCG@10"
"""The measure of the published rows and of averages."""

TOLERANCES = {"words": (0.01, 0.1), "vectors": (0.1, 1.0), "llm": (1.0, 3.0)}
"""Kind of system -> largest differences in points for the verdicts OK and near.

BM25 computes the same numbers as the benchmark. With models, near ties differ between devices and precisions. An LLM
gives different answers each time.
"""


class Expectation(BaseModel):
    """Scores × 100 that a system should have on some datasets, and their source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    label: str = ""
    """The name of the system in its source, in the form of a spec."""
    source: str
    seen_with: str = ""
    """The release or the paper with these scores."""
    conditions: tuple[str, ...] = ()
    """Conditions that the scores depend on, and known differences from our run."""
    recorded: bool = False
    """True if the generated texts are those that the benchmark recorded."""
    values: dict[str, dict[str, float]]
    """Dataset -> measure -> score × 100. A dataset without measures is part of the average only."""
    average: float | None = None
    """The mean of the main measure over all datasets."""
    ok: float
    near: float

    @property
    def needs_no_model(self) -> bool:
        """True if it needs neither a GPU nor a key: BM25, also with texts that were recorded."""
        *before, last = parse(self.system)
        asks = any(call.arguments and call.arguments != (AUTHOR,) for stage in before for call in stage)
        return [call.name for call in last] == ["bm25"] and (self.recorded or not asks)

    @property
    def data(self) -> str:
        """The datasets as text for `--data`."""
        return _typed(list(self.values))

    def command(self, datasets: Sequence[str] = ()) -> str:
        """Return the command that computes the scores, on all datasets or on some."""
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
    """Return all expectations: those of the package's file first, then those of published rows."""
    file = resources.files("r2med.publication.leaderboard") / "expectations.toml"
    own = validated(_File, read_toml(file), file).expectation
    return (*own, *(expectation_of(row) for row in published() if row.system))


def expectation_of(row: PublishedRow) -> Expectation:
    """Return the expectation of a published row that r2med can run."""
    [last] = row.calls[-1]
    judged = bool(last.arguments) or last.name in LLM_RERANKERS  # NAME(LLM), or a trained LLM reranker
    ok, near = TOLERANCES["llm" if judged else "words" if last.name == "bm25" else "vectors"]
    limit = f"texts are cut at {row.max_length:,} tokens" if row.max_length else ""
    return Expectation(
        system=row.system,
        label=row.name,
        source=row.source,
        seen_with=row.reported_by,
        conditions=tuple(filter(None, (limit, row.differs, row.note))),
        recorded=bool(row.expansion),
        values=_values(row),
        average=row.average,
        ok=ok,
        near=near,
    )


def _values(row: PublishedRow) -> dict[str, dict[str, float]]:
    if row.average_only:
        return {name: {} for name in groups()[BENCHMARK]}
    return {name: {MEASURE: score} for name, score in row.scores.items()}
