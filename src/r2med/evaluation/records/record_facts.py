"""What a record says of its dataset, its queries, its stages and the files beside it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from r2med.foundation.core.cost import NOTHING, Cost


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

    stage: Literal["expand", "retrieve", "rerank", "read", "judge"]
    """The kind of stage. A reader reads what was retrieved, and a judge may grade its answers."""
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
