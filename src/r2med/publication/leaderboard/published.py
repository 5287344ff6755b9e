"""Read the published scores on R2MED, with their sources, their conditions, and the r2med system of each row."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict

from r2med.data.dataset_cards import BENCHMARK, groups
from r2med.foundation.core.names import read_toml, validated
from r2med.foundation.core.spec import Call, Calls, joined_stages, parse, parse_stage, printed_system
from r2med.models.encoders.model_cards import MODELS
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS
from r2med.systems.system.suites import suite

SUITES = ("paper", "rerank")
"""Suites with the systems of the benchmark's own rows."""

PARTS = ("expansion", "llm", "retriever", "reranker", "rerank_depth")
"""The columns that name a system."""

_LIMIT = re.compile(r"(\d+)-token limit")


@dataclass(frozen=True)
class PublishedRow:
    """One published system: nDCG@10 × 100 as printed by its source, on all datasets, on some, or the average alone."""

    retriever: str
    expansion: str
    llm: str
    reranker: str
    rerank_depth: int | None
    scores: Mapping[str, float]
    """Dataset -> score. Empty if only the average is published."""
    average: float | None
    """The average over all datasets. None if scores of some datasets alone are published."""
    reported_by: str
    source: str
    note: str
    max_length: int | None
    """Maximum number of tokens that the retriever read of a text, if it is known."""
    calls: Calls = ()
    """The r2med system of this row; empty if r2med cannot run it."""
    differs: str = ""
    """Known differences between the published system and the r2med system."""
    reason: str = ""
    """Why r2med cannot run it, one sentence; empty if it can."""

    @property
    def average_only(self) -> bool:
        """True if its source prints the average and no score of a dataset."""
        return not self.scores

    @property
    def system(self) -> str:
        """The spec of the r2med system; empty if r2med cannot run it."""
        return printed_system(self.calls)

    @property
    def name(self) -> str:
        """The name of the row in the form of a spec, with the names that its source uses."""
        expansion = Call(self.expansion, (self.llm,)) if self.expansion else None
        reranker = Call(self.reranker, depth=self.rerank_depth) if self.reranker else None
        return joined_stages(filter(None, (expansion, self.retriever, reranker)))


class _Reported(BaseModel):
    """The r2med systems for the names that one source uses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str
    source: str = ""
    differs: str = ""
    retrievers: dict[str, str]
    rerankers: dict[str, str] = {}

    def system(self, row: Mapping[str, str]) -> Calls:
        """Return the system of a row; empty if it is not one of these."""
        if not row["reported_by"].startswith(self.by) or not row["source"].startswith(self.source):
            return ()
        retriever, reranker = self.retrievers.get(row["retriever"]), self.rerankers.get(row["reranker"], "")
        if retriever is None or row["expansion"] or bool(row["reranker"]) != bool(reranker):
            return ()
        if not reranker:
            return parse(retriever)
        [call] = parse_stage(reranker)
        depth = int(row["rerank_depth"]) if row["rerank_depth"] else call.depth
        return (*parse(retriever), (replace(call, depth=depth),))


class _Unavailable(BaseModel):
    """Rows of one source that r2med cannot run, and the reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str
    rows: tuple[str, ...]
    reason: str


class _Systems(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    reported: tuple[_Reported, ...]
    unavailable: tuple[_Unavailable, ...]

    def reason(self, row: PublishedRow) -> str:
        """Return why a row without a system cannot be run; empty if no reason is known."""
        of_row = (each for each in self.unavailable if row.reported_by.startswith(each.by) and row.name in each.rows)
        return next((each.reason for each in of_row), "")


@cache
def published() -> tuple[PublishedRow, ...]:
    """Return all published rows, in the order of the file."""
    folder = resources.files("r2med.publication.leaderboard")
    file = folder / "published_systems.toml"
    systems = validated(_Systems, read_toml(file), file)
    rows = csv.DictReader((folder / "published.csv").read_text(encoding="utf-8").splitlines())
    return tuple(_with_reason(_row(row, systems.reported), systems) for row in rows)


def _with_reason(row: PublishedRow, systems: _Systems) -> PublishedRow:
    return row if row.calls else replace(row, reason=systems.reason(row))


def _row(row: Mapping[str, str], reported: tuple[_Reported, ...]) -> PublishedRow:
    nothing: tuple[Calls, str] = (), ""
    calls, differs = next(((found, group.differs) for group in reported if (found := group.system(row))), nothing)
    of_benchmark = row["reported_by"].startswith(BENCHMARK)
    if of_benchmark and not calls:
        calls = _suite_systems()[tuple(row[column] for column in PARTS)]
    return PublishedRow(
        retriever=row["retriever"],
        expansion=row["expansion"],
        llm=row["llm"],
        reranker=row["reranker"],
        rerank_depth=int(row["rerank_depth"]) if row["rerank_depth"] else None,
        scores={name: float(row[name]) for name in groups()[BENCHMARK] if row[name]},
        average=float(row["average"]) if row["average"] else None,
        reported_by=row["reported_by"],
        source=row["source"],
        note=row["note"],
        max_length=_max_length(row, calls if of_benchmark else ()),
        calls=calls,
        differs="; ".join(filter(None, (_prompt_difference(calls), differs))),
    )


def _prompt_difference(calls: Calls) -> str:
    """Return how the prompt of an LLM reranker differs from that of the published system; empty without a reranker."""
    card = LLM_RERANKERS.get(calls[-1][0].name) if calls else None
    return "the wording of the prompt is ours" if card is not None and card.published else ""


@cache
def _suite_systems() -> dict[tuple[str, ...], Calls]:
    """Return parts of a published row -> system of the suites. Of several variants, the first one is used."""
    systems: dict[tuple[str, ...], Calls] = {}
    for system in (system for name in SUITES for system in suite(name).calls):
        calls = [call for [call] in system]
        expansion = calls.pop(0) if calls[0].arguments else Call("", ("",))
        retriever, reranker = (*calls, Call(""))[:2]
        depth = str(reranker.depth or "")
        parts = (expansion.name, expansion.arguments[0], _without_variant(retriever), _without_variant(reranker), depth)
        systems.setdefault(parts, system)
    return systems


def _without_variant(call: Call) -> str:
    return call.name.partition(":")[0]


def _max_length(row: Mapping[str, str], calls: Calls) -> int | None:
    """Return the token limit of a row: from its note, or for the benchmark's own rows from the model card."""
    if limit := _LIMIT.search(row["note"]):
        return int(limit[1])
    names = [call.name for stage in calls for call in stage]
    return next((MODELS[name].document.max_tokens for name in names if name in MODELS), None)
