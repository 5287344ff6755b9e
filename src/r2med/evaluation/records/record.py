"""Record: one evaluation with everything its numbers depend on, sealed by a checksum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, field_validator

from r2med.evaluation.records.files_beside import checked_file
from r2med.evaluation.records.repeats import repeat_of, with_valid_repeat
from r2med.evaluation.records.sealed_json import parse_sealed, record_bytes, write_sealed
from r2med.foundation.core.cost import NOTHING, Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest

APART_SUFFIX = ".apart.json"
"""The end of the name of a record that no board or comparison finds: see `set_apart`."""
FORMAT = 2


def record_key(settings: Mapping[str, Any], fingerprint: str) -> str:
    """Return the key of a record: a digest of the format, the settings and the fingerprint of the dataset."""
    return digest(["record", FORMAT, settings, fingerprint])


class RecordPart(BaseModel):
    """A part of a record. Nothing can be changed or added."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OverlayFacts(RecordPart):
    """An overlay whose labels an evaluation used beside those of the dataset."""

    name: str
    """The name of its file."""
    digest: str
    """A digest of its labels."""
    labels: int
    """Number of its labels for the dataset."""
    reviewed: int = 0
    """Number of these labels that people gave."""
    trust: str = ""
    """What readers of its labels must know: "not tested" if a judge had too few planted controls."""


class DatasetFacts(RecordPart):
    """The dataset of an evaluation."""

    name: str
    """The name of the dataset, as for `--data`."""
    fingerprint: str
    """A digest of the corpus, the queries and the judgements."""
    corpus_fingerprint: str
    """A digest of the corpus."""
    queries: int
    """Number of queries."""
    documents: int
    """Number of documents."""
    judged_queries: int
    """Number of queries with judgements. Means are over these."""
    task: str = ""
    """The task of the benchmark that the dataset belongs to."""
    scenario: str = ""
    """The clinical setting of the queries."""
    source: str = ""
    """REPOSITORY@REVISION of a dataset of the hub; empty for a user's folder."""
    judges: tuple[str, ...] = ()
    """The families of the LLMs that judged the documents."""
    judge_test: str = ""
    """How these LLMs answered their controls, such as "judge not tested". Empty if it is not known."""
    overlays: tuple[OverlayFacts, ...] = ()
    """The overlays whose labels count beside those of the dataset. Empty for the labels as published."""
    part: str = ""
    """What was asked, if it is not the whole dataset as published, such as "the first 5 questions"."""


class QueryFacts(RecordPart):
    """The facts about a query by which scores can be grouped."""

    words: int
    """Number of words of the query."""
    positives: int
    """Number of relevant documents."""
    body_system: str = ""
    """The body system, as the dataset states it."""


class FileFacts(RecordPart):
    """A file beside the record."""

    file: str
    """The name of the file."""
    sha256: str
    """The SHA-256 of its bytes."""


class RunFacts(FileFacts):
    """The file of the ranking."""

    depth: int
    """Number of documents that were asked for, for each query."""


class StageFacts(RecordPart):
    """The cost and the failures of one stage, the same for new and for cached work."""

    stage: Literal["expand", "retrieve", "rerank"]
    """The kind of stage."""
    name: str
    """The stage with its settings, as typed."""
    cost: Cost
    """Seconds for all queries, one after another, as if nothing had been cached."""
    prepared: Cost = NOTHING
    """Seconds for preparing the corpus once."""
    failures: int = 0
    """Number of queries without generated text, or of questions to a reranker without an order. In a search that asks
    LLMs, both.
    """
    asked: int = 0
    """Number of questions to an LLM reranker, each about one document or one list, and of the queries of agents and
    expansions inside a search.
    """
    failure_kinds: dict[str, int] = {}
    """Kind of failure -> number of failures."""
    failed: dict[str, str] = {}
    """Query -> text with the number of its failed calls of each kind."""
    repairs: dict[str, int] = {}
    """Kind of repair of an LLM's ranking -> number of repairs."""
    details: dict[str, float] = {}
    """Further facts, such as the number of turns of a search agent."""
    prompt: str = ""
    """The prompt that an LLM reranker read: "own prompt" if its authors publish another, or the name of a set."""
    gold: dict[str, dict[str, int]] = {}
    """Ranks after this stage: query -> relevant document -> rank, from 1. Documents beyond the depth are left out."""
    varies: bool = False
    """True if another run of this stage can give another result: it asks an LLM or a search server, or it shuffles.
    False for recorded texts, and for an LLM in this process at temperature 0.
    """

    def attempts(self, queries: int) -> int:
        """Return the number of queries or questions that could fail in this stage, at least 1."""
        if self.stage == "expand":
            return max(1, queries)
        return max(1, self.asked, self.failures)

    @property
    def time_is_known(self) -> bool:
        """False if the stage stated no cost at all, as of a plugin."""
        return self.cost != NOTHING

    def seconds_per_query(self, queries: int) -> float:
        """Return the mean seconds of a query in the stage."""
        return self.cost.seconds / queries


class Record(RecordPart):
    """One system on one dataset. Values of measures are between 0 and 1."""

    format: int = FORMAT
    """The number of this format."""
    key: str
    """A digest of the format, the settings and the dataset. The name of the file ends with its first characters."""
    system: str
    """The system, as typed."""
    settings: dict[str, Any]
    """Every setting of every stage that differs from its default, and the digest of the expansion."""
    dataset: DatasetFacts
    """The dataset that was searched."""
    mean: dict[str, float]
    """Measure -> mean over the judged queries."""
    per_query: dict[str, dict[str, float]]
    """Query -> measure -> value."""
    queries: dict[str, QueryFacts] = {}
    """The facts of every judged query."""
    run: RunFacts | None = None
    """The file with the rankings."""
    traces: FileFacts | None = None
    """The file with the conversations of a search agent."""
    generated: FileFacts | None = None
    """The file with the texts of an expansion: query -> texts."""
    stages: tuple[StageFacts, ...]
    """Cost and failures of each stage, in order."""
    seeds: dict[str, int] = {}
    """Seeds of what is random, by name."""
    versions: dict[str, str]
    """Package -> its version, for packages that can affect a score."""
    vector_versions: dict[str, list[str]] = {}
    """Package -> versions that made the vectors of this record, which may be stored ones."""
    source: str
    """A digest of the code that made the record."""
    created: str
    """Date and time in UTC."""
    offline: bool = False
    """True if other machines could not be reached while the record was made, so no text left this machine."""
    lock: str = ""
    """The digest of the lock that decided this evaluation beforehand; empty without one."""
    name: str = ""
    """The name that the run gave the system; empty if the system is shown as typed."""
    named: str = ""
    """Date and time in UTC at which a run last named the record: it made the record, or read it from its folder."""

    @field_validator("settings")
    @classmethod
    def _has_valid_repeat(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return with_valid_repeat(settings)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {self.mean[name]:.4f}" for name in ("nDCG@10",) if name in self.mean)
        return f"Record({self.display_name} on {self.dataset.name}: {shown})"

    @property
    def display_name(self) -> str:
        """The name of the system in tables: the given one, or the system as typed."""
        return self.name or self.system

    @property
    def repeat(self) -> int:
        """The number of the repeat, from 0. Each repeat asks the LLMs and shuffles anew."""
        return repeat_of(self.settings)

    @property
    def varies(self) -> bool:
        """True if another run can give other scores. False if one run says it all."""
        return any(stage.varies for stage in self.stages)

    @property
    def failures(self) -> int:
        """Number of queries that got no generated text and were searched unchanged, and of failures inside searches."""
        return sum(stage.failures for stage in self.stages if stage.stage in ("expand", "retrieve"))

    @property
    def unordered(self) -> int:
        """Number of failed questions to rerankers."""
        return sum(stage.failures for stage in self.stages if stage.stage == "rerank")

    @property
    def apart(self) -> str:
        """Why the scores do not belong among those of other systems; empty if they do."""
        return set_apart(self.settings, self.dataset.part)

    @property
    def may_improve(self) -> bool:
        """True if a call failed whose success would not change the key. Such a record is made again."""
        return bool(self.unordered) or any(stage.failure_kinds for stage in self.stages if stage.stage == "retrieve")

    @property
    def cost_is_known(self) -> bool:
        """False if the system used recorded texts or a run file, whose cost is not known, or if a stage stated none."""
        given = ((stage.get("source"), stage.get("stage")) for stage in declared_stages(self.settings))
        made_elsewhere = any(source == "recorded" or kind == "run" for source, kind in given)
        return not made_elsewhere and all(stage.time_is_known for stage in self.stages)

    @property
    def unranked(self) -> int:
        """Number of passages that rerankers read and did not rank."""
        return sum(stage.repairs.get("missing", 0) for stage in self.stages if stage.stage == "rerank")

    @property
    def cost(self) -> Cost:
        """The cost of all stages, including the corpus. If it is not known, one call without a price is counted."""
        return total(stage.cost + stage.prepared for stage in self.stages) + Cost(unpriced=int(not self.cost_is_known))

    @property
    def seconds_per_query(self) -> float | None:
        """Seconds from a query to its ranking, with all stages and one query at a time. None if the cost is not known.

        The time for preparing the corpus is not included.
        """
        seconds = sum(stage.seconds_per_query(max(1, self.dataset.queries)) for stage in self.stages)
        return seconds if self.cost_is_known else None

    @property
    def gold(self) -> dict[str, dict[str, int]]:
        """Query -> relevant document -> rank in the final ranking."""
        return self.stages[-1].gold

    def write(self, path: Path | str) -> None:
        """Write the record to its file, completely or not at all."""
        write_sealed(self, Path(path))

    @classmethod
    def read(cls, path: Path | str) -> Record:
        """Read a record. Raises UserError if it was changed or truncated, or has another format."""
        return cls.parse(record_bytes(path), path)

    @classmethod
    def parse(cls, content: bytes, path: Path | str) -> Record:
        """Return the record in the bytes of a file. `path` is its name in messages."""
        record = parse_sealed(cls, content, path, FORMAT, "r2med run SYSTEM")
        for facts in filter(None, (record.run, record.traces, record.generated)):
            # Otherwise the record of another person could make a board show any file.
            if not facts.file or Path(facts.file).name != facts.file:
                raise UserError(f"{path} names {facts.file[:200]}, which is not a file beside it: run it again")
        return record

    def files_are_sound(self, folder: Path | str) -> bool:
        """Return True if the files beside the record are those it was made with."""
        return not self.unsound_file(folder)

    def unsound_file(self, folder: Path | str) -> str:
        """Return the name of the first file beside the record that is missing or changed; empty if all are sound."""
        for facts in filter(None, (self.run, self.traces, self.generated)):
            try:
                checked_file(Path(folder) / facts.file, facts.sha256, "run it again")
            except UserError:
                return facts.file
        return ""


def declared_stages(settings: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every stage in the settings of a system, including nested ones."""
    if isinstance(settings, Mapping):
        if "stage" in settings:
            yield settings
        settings = list(settings.values())
    if isinstance(settings, list | tuple):
        for part in settings:
            yield from declared_stages(part)


def set_apart(settings: Mapping[str, Any], part: str) -> str:
    """Return why scores do not belong among those of other systems; empty if they do.

    `part` is what was asked of the dataset, if it is not all. An agent from which the relevant documents are hidden
    cannot find them.
    """
    if any(stage.get("without") == "relevant" for stage in declared_stages(settings)):
        return "the relevant documents were hidden from its agent"
    return f"its agent was asked {part}" if part else ""


def llms_of(record: Record) -> list[str]:
    """Return the LLMs of a system by name. A trained reranker or rewriter that names none has a model of its own."""
    asking = [stage for stage in declared_stages(record.settings) if "llm" in stage]
    named = [str(stage["llm"] or (stage.get("model") or {}).get("model", "")) for stage in asking]
    return list(dict.fromkeys(filter(None, named)))
