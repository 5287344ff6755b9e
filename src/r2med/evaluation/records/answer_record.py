"""AnswerRecord: the answers of one reader that read the results of one system on one dataset, sealed by a checksum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, assert_never

from pydantic import Field, ValidationError, field_validator

from r2med.evaluation.records.answer_words import (
    ABSTAINED,
    SEARCHED,
    AnswerForm,
    AnswerGrade,
    AnswerRemark,
    AnswerStatus,
    Condition,
    NamedBy,
    NuggetVerdict,
)
from r2med.evaluation.records.files_beside import checked_file
from r2med.evaluation.records.record import DatasetFacts, FileFacts, QueryFacts, RecordPart
from r2med.evaluation.records.repeats import repeat_of, with_valid_repeat
from r2med.evaluation.records.sealed_json import parse_sealed, record_bytes, strict_json, write_sealed
from r2med.foundation.core.cost import NOTHING, Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.search_steps import SearchStep
from r2med.foundation.store import digest
from r2med.foundation.store.files import json_line, sha256, write_atomically

FORMAT = 3
"""In format 2 rules decided which open answers are refusals, in format 1 also which are right."""
SUFFIX = ".answers.json"
"""The end of the name of an answer record. The answers themselves are in a file that ends in `.answers.jsonl`."""


def answer_key(settings: Mapping[str, Any], fingerprint: str) -> str:
    """Return the key of an answer record: a digest of the format, the settings and the dataset's fingerprint."""
    return digest(["answers", FORMAT, settings, fingerprint])


class CitedSentence(RecordPart):
    """One sentence of an answer, with the passages that it cites."""

    text: str
    """The sentence, without the marks of its citations."""
    documents: tuple[str, ...] = ()
    """The ids of the cited passages. The reader read all of them."""
    unknown: int = 0
    """Number of citations of passages that do not exist."""
    supported: bool | None = None
    """True if a judge says that the cited passages support the sentence. None if no judge decided."""


class SearchFacts(RecordPart):
    """What an agent did before it answered one question."""

    steps: dict[SearchStep, tuple[str, ...]] = Field(default_factory=dict)
    """Step -> the documents that came so far. A step that the agent does not have is missing."""
    confidence: float | None = None
    """How sure the agent was that its answer is right, from 0 to 1; None if it did not say."""
    searches: int = 0
    """Number of searches that the agent asked for, also of those that were refused as repeated."""
    repeated: int = 0
    """Number of these whose query was searched before."""
    new_relevant: tuple[int, ...] = ()
    """Search by search, the number of relevant documents that no earlier search returned."""
    named: NamedBy | None = None
    """How a query came to name the reference answer; None if none named it."""
    turns: int = 0
    """Number of turns of the LLM."""
    prompt_tokens: int = 0
    """Number of tokens that the LLM read."""
    completion_tokens: int = 0
    """Number of tokens that the LLM wrote."""
    dollars: float | None = None
    """What the LLM cost; None if that is not known."""
    seconds: float = 0.0
    """Time that the LLM took."""

    @property
    def tokens(self) -> int:
        """Number of tokens that the LLM read and wrote."""
        return self.prompt_tokens + self.completion_tokens


class GivenAnswer(RecordPart):
    """One answer of a reader, with what it read and how it was judged."""

    query: str
    """The id of the query."""
    condition: Condition
    """What the reader read."""
    read: tuple[str, ...] = ()
    """The ids of the passages, in the order in which they were shown."""
    cut: int = 0
    """Number of passages that were shortened or left out, because they did not fit the reader's window."""
    tokens: int = 0
    """About how many tokens the question and its passages took."""
    status: AnswerStatus
    """What came back."""
    failure: str = ""
    """The kind of failure, if there is no answer."""
    text: str = ""
    """The answer, as the reader wrote it. For a choice, the text of the chosen option, if there is one."""
    remarks: tuple[AnswerRemark, ...] = ()
    """What is striking about an open answer."""
    options: tuple[str, ...] = ()
    """The options of a choice, as they were shown."""
    choice: int | None = None
    """The number of the chosen option, from 0."""
    sentences: tuple[CitedSentence, ...] = ()
    """The sentences of the answer with their citations."""
    by_rule: bool | None = None
    """The verdict of the rule: right, wrong, or None if it cannot decide. Of an open answer it is only a control of the
    judge, if there is one."""
    grade: AnswerGrade | None = None
    """The judge's grade of an open answer; None without a judge, or if its grade could not be read."""
    why: str = ""
    """The reason that the judge gave."""
    nuggets: dict[str, NuggetVerdict] = Field(default_factory=dict)
    """Nugget -> if the answer contains it, completely or in part. Empty if nuggets were not matched."""
    statements: int = 0
    """Number of statements of the answer that were held against the nuggets, for their precision."""
    statements_found: int = 0
    """Number of these statements that say a nugget."""
    search: SearchFacts | None = None
    """What the agent did, in the condition "searched"."""
    scores: dict[str, float] = Field(default_factory=dict)
    """Measure -> value, for all measures that are known for this answer."""

    @property
    def is_answered(self) -> bool:
        """True for an answer that no judge calls an abstention."""
        return self.status == "answered" and self.grade != ABSTAINED


class JudgeFacts(RecordPart):
    """How a judge answered planted controls, and how often it agreed with the rule."""

    judge: str
    """The LLM that judged."""
    controls: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """Kind of control -> (number judged as they should be, number asked). All readers, systems and datasets of a
    command have the same controls."""
    trust: Literal["", "not tested"] = ""
    """What readers of the scores must know: "not tested" if there were too few controls."""
    agreed: int = 0
    """Number of answers for which rule and judge say the same."""
    both: int = 0
    """Number of answers for which both decided."""
    own_family: bool = False
    """True if the judge is of the same family of LLMs as the reader."""
    failures: dict[str, int] = Field(default_factory=dict)
    """Kind of failure -> number of questions to the judge about these answers without a usable answer."""


class AnswerRecord(RecordPart):
    """One reader with one system on one dataset. Values of measures are between 0 and 1."""

    format: int = FORMAT
    """The number of this format."""
    key: str
    """A digest of the format, the settings and the dataset. The name of the file ends with its first characters."""
    system: str
    """The system whose results were read, as typed."""
    reader: str
    """The LLM that answered, as typed."""
    settings: dict[str, Any]
    """Every setting that the answers and their scores depend on."""
    dataset: DatasetFacts
    """The dataset that was searched."""
    form: AnswerForm
    """How the questions were asked."""
    passages: int
    """Number of passages that were read in the condition "retrieved"."""
    mean: dict[Condition, dict[str, float]]
    """Condition -> measure -> mean over the questions that have a value."""
    per_query: dict[Condition, dict[str, dict[str, float]]]
    """Condition -> query -> measure -> value. A query has no value for a measure that could not be decided."""
    statuses: dict[Condition, dict[AnswerStatus, int]]
    """Condition -> status -> number of answers."""
    grades: dict[Condition, dict[AnswerGrade, int]] = Field(default_factory=dict)
    """Condition -> the judge's grade -> number of open answers. Empty without a judge."""
    queries: dict[str, QueryFacts] = Field(default_factory=dict)
    """The facts of every question that was asked."""
    retrieval: dict[str, float] = Field(default_factory=dict)
    """Query -> nDCG@10 of the system, for the questions that were asked."""
    answers: FileFacts | None = None
    """The file with all answers."""
    conversations: FileFacts | None = None
    """In the condition "searched", the file with the conversations of the agent. It is that of the record of its
    ranking."""
    nuggets: str = ""
    """A digest of the nuggets that were matched; empty without nuggets."""
    judge: JudgeFacts | None = None
    """The judge, if there was one."""
    costs: dict[Literal["retrieval", "reader", "judge"], Cost] = Field(default_factory=dict)
    """The cost of each part for all questions, as if nothing had been cached. Retrieval: without the corpus."""
    reader_costs: dict[Condition, Cost] = Field(default_factory=dict)
    """Condition -> cost of the reader for its questions. What an agent spends in the condition "searched" is a part of
    the cost of retrieval."""
    notices: tuple[str, ...] = ()
    """What a reader of the scores should know, one sentence each."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Package -> its version, for packages that can affect a score."""
    source: str = ""
    """A digest of the code that made the record."""
    created: str
    """Date and time in UTC."""
    offline: bool = False
    """True if other machines could not be reached while the record was made."""
    varies: bool = False
    """True if another run can give other scores: system, reader or judge varies."""

    @field_validator("settings")
    @classmethod
    def _has_valid_repeat(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return with_valid_repeat(settings)

    @property
    def repeat(self) -> int:
        """The number of the repeat, from 0. In each, all LLMs are asked anew."""
        return repeat_of(self.settings)

    searching: dict[str, float] = Field(default_factory=dict)
    """In the condition "searched", means over the questions: searches, repeated, new_relevant (per search), turns,
    tokens, dollars and seconds, and the shares of questions whose reference answer was a guess or a find."""

    @property
    def name(self) -> str:
        """The system and its reader, as tables show them."""
        return f"{self.system} · {self.reader}"

    def abstained(self, condition: Condition) -> int | None:
        """Return the number of open answers of a condition that settle on nothing; None if no judge graded them."""
        return self.grades[condition].get(ABSTAINED, 0) if condition in self.grades else None

    @property
    def cost(self) -> Cost:
        """The cost of all parts."""
        return total(self.costs.values()) if self.costs else NOTHING

    def cost_of(self, condition: Condition) -> Cost | None:
        """Return the cost of answering every query of the dataset in one condition; None if it is not known.

        It is the cost of the reader, and in the condition "retrieved" also that of the search, without judging. An
        agent that searches is the search and the reader in one.
        """
        if condition not in self.reader_costs or not self.queries:
            return None
        share = self.dataset.queries / len(self.queries)
        cost, retrieval = self.reader_costs[condition].times(share), self.costs.get("retrieval", NOTHING)
        if SEARCHED in self.statuses and self.settings.get("queries"):
            retrieval = retrieval.times(share)  # the agent worked on these questions only
        match condition:
            case "retrieved":
                return cost + retrieval
            case "searched":
                return retrieval
            case "closed book" | "relevant" | "random":
                return cost
            case other:
                assert_never(other)

    def write(self, path: Path | str) -> None:
        """Write the record to its file, completely or not at all."""
        write_sealed(self, Path(path))

    @classmethod
    def read(cls, path: Path | str) -> AnswerRecord:
        """Read a record. Raises UserError if it was changed or truncated, or has another format."""
        return cls.parse(record_bytes(path), path)

    @classmethod
    def parse(cls, content: bytes, path: Path | str) -> AnswerRecord:
        """Return the record in the bytes of a file. `path` is its name in messages."""
        record = parse_sealed(cls, content, path, FORMAT, "r2med answer SYSTEM")
        for facts in filter(None, (record.answers, record.conversations)):
            # Otherwise the record of another person could make a board show any file.
            if Path(facts.file).name != facts.file:
                raise UserError(f"{path} names {facts.file[:200]}, which is not a file beside it: run it again")
        return record

    def given(self, folder: Path | str) -> tuple[GivenAnswer, ...]:
        """Return all answers, from the file beside the record. Raises UserError if it is missing or was changed."""
        if self.answers is None:
            return ()
        file = checked_file(Path(folder) / self.answers.file, self.answers.sha256, "r2med answer makes it again")
        try:
            return tuple(GivenAnswer(**strict_json(line)) for line in file.read_bytes().splitlines())
        except (ValueError, TypeError, ValidationError):
            raise UserError(f"{file} is not a file of answers: r2med answer makes it again") from None


def answers_path(path: Path) -> Path:
    """Return the path of the answers of a record."""
    return path.with_suffix(".jsonl")


def write_answers(answers: Iterable[GivenAnswer], path: Path) -> FileFacts:
    """Write answers as JSON lines beside the record at `path`."""
    file = answers_path(path)
    write_atomically(file, (json_line(each.model_dump(mode="json", exclude_defaults=True)) for each in answers))
    return FileFacts(file=file.name, sha256=sha256(file))
