"""What a record of answers adds to one of a ranking: the reader, its answers and scores by condition, the judge."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from r2med.evaluation.records.answer_words import (
    ABSTAINED,
    AnswerForm,
    AnswerGrade,
    AnswerRemark,
    AnswerStatus,
    Condition,
    NamedBy,
    NuggetVerdict,
)
from r2med.evaluation.records.record_facts import FileFacts, RecordPart
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.search_steps import SearchStep
from r2med.foundation.store.files import json_line, sha256, strict_json, write_atomically


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


class AnswerFacts(RecordPart):
    """The answers of one reader to the questions of a dataset. Values of measures are between 0 and 1."""

    reader: str = ""
    """The LLM that answered, as typed; empty in the record of a ranking."""
    form: AnswerForm = "open"
    """How the questions were asked."""
    passages: int = 0
    """Number of passages that were read in the condition "retrieved"."""
    mean: dict[Condition, dict[str, float]] = Field(default_factory=dict)
    """Condition -> measure -> mean over the questions that have a value."""
    per_query: dict[Condition, dict[str, dict[str, float]]] = Field(default_factory=dict)
    """Condition -> query -> measure -> value. A query has no value for a measure that could not be decided."""
    statuses: dict[Condition, dict[AnswerStatus, int]] = Field(default_factory=dict)
    """Condition -> status -> number of answers."""
    grades: dict[Condition, dict[AnswerGrade, int]] = Field(default_factory=dict)
    """Condition -> the judge's grade -> number of open answers. Empty without a judge."""
    file: FileFacts | None = None
    """The file with all answers."""
    nuggets: str = ""
    """A digest of the nuggets that were matched; empty without nuggets."""
    judge: JudgeFacts | None = None
    """The judge, if there was one."""
    costs: dict[Condition, Cost] = Field(default_factory=dict)
    """Condition -> cost of the reader for its questions. What an agent spends in the condition "searched" is the cost
    of retrieval."""
    searching: dict[str, float] = Field(default_factory=dict)
    """In the condition "searched", means over the questions: searches, repeated, new_relevant (per search), turns,
    tokens, dollars and seconds, and the shares of questions whose reference answer was a guess or a find."""
    notices: tuple[str, ...] = ()
    """What a reader of the scores should know, one sentence each."""

    def abstained(self, condition: Condition) -> int | None:
        """Return the number of open answers of a condition that settle on nothing; None if no judge graded them."""
        return self.grades[condition].get(ABSTAINED, 0) if condition in self.grades else None


def answers_path(path: Path) -> Path:
    """Return the path of the answers of a record."""
    return path.with_suffix(".jsonl")


def write_answers(answers: Iterable[GivenAnswer], path: Path) -> FileFacts:
    """Write answers as JSON lines beside the record at `path`."""
    file = answers_path(path)
    write_atomically(file, (json_line(each.model_dump(mode="json", exclude_defaults=True)) for each in answers))
    return FileFacts(file=file.name, sha256=sha256(file))


def read_answers(file: Path, again: str) -> tuple[GivenAnswer, ...]:
    """Return the answers of a file. `again` is the end of the message if it has none: how to make the file again."""
    try:
        return tuple(GivenAnswer(**strict_json(line)) for line in file.read_bytes().splitlines())
    except (ValueError, TypeError, ValidationError):
        raise UserError(f"{file} is not a file of answers: {again}") from None
