"""Record: one evaluation with everything its numbers depend on, sealed by a checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from r2med.errors import UserError
from r2med.store import digest
from r2med.store.files import sha256, write_atomically

FORMAT = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DatasetFacts(_Part):
    """Which data."""

    name: str
    fingerprint: str
    corpus_fingerprint: str
    queries: int
    documents: int
    judged_queries: int
    task: str = ""
    source: str = ""


class RunFacts(_Part):
    """Where the ranking is, beside the record."""

    file: str
    sha256: str
    depth: int


class TraceFacts(_Part):
    """Where the conversations of a search agent are, beside the record."""

    file: str
    sha256: str


class StageFacts(_Part):
    """What one stage took and how it went: the same whether it was asked now or read back."""

    stage: Literal["expansion", "search", "rerank"]
    name: str
    seconds: float
    """For all queries, one after the other, as if nothing had been kept; preparing the corpus is not in it."""
    failures: int = 0
    """Queries without generated text, or calls of a reranker that brought no order."""
    failure_kinds: dict[str, int] = {}
    repairs: dict[str, int] = {}
    llm: dict[str, float] = {}
    usage: dict[str, float] = {}


class Record(_Part):
    """One system on one dataset. Values of measures lie between 0 and 1."""

    format: int = FORMAT
    key: str
    system: str
    settings: dict[str, Any]
    dataset: DatasetFacts
    mean: dict[str, float]
    per_query: dict[str, dict[str, float]]
    run: RunFacts | None = None
    traces: TraceFacts | None = None
    stages: tuple[StageFacts, ...] = ()
    failures: int = 0
    """Queries that got no generated text and were searched as they are."""
    failure_kinds: dict[str, int] = {}
    llm: dict[str, float] = {}
    """What LLMs took in all stages: requests, tokens, dollars, seconds; the same asked now or read back."""
    llm_tokens: int = 0
    usage: dict[str, float] = {}
    """What embedding models used: texts, tokens, texts cut at a limit, …"""
    cost_usd: float = 0.0
    encoder_seconds: float = 0.0
    """What embedding models and cross-encoders took: the corpus, the queries, the pairs."""
    seconds_per_query: float = 0.0
    """From a query to its ranking, all stages, one query at a time; preparing the corpus is not in it."""
    seeds: dict[str, int] = {}
    timings: dict[str, float]
    versions: dict[str, str]
    created: str

    def write(self, path: Path) -> None:
        """Write the record under its final name, whole or not at all."""
        body = self.model_dump()
        content = json.dumps({**body, "checksum": digest(body)}, indent=1, ensure_ascii=False)
        write_atomically(path, content.encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a record back; one that was altered or cut off is refused."""
        try:
            body = json.loads(path.read_bytes())
            checksum = body.pop("checksum")
            record = cls(**body)
            untouched = checksum == digest(body)  # a ValueError where somebody wrote NaN
        except (ValueError, KeyError, TypeError, AttributeError, ValidationError):
            raise UserError(f"{path} is not a record of r2med, or it was cut off: run it again") from None
        if not untouched:
            raise UserError(f"{path} was altered after it was written: run it again")
        return record

    @property
    def unordered(self) -> int:
        """Calls of rerankers that failed: such a record is made again, since they may work the next time."""
        return sum(stage.failures for stage in self.stages if stage.stage == "rerank")

    def files_are_sound(self, folder: Path) -> bool:
        """Tell whether the files beside the record are those it was made with."""
        try:
            return all(sha256(folder / facts.file) == facts.sha256 for facts in (self.run, self.traces) if facts)
        except OSError:
            return False
