"""Record: one evaluation with everything its numbers depend on, sealed by a checksum."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, field_validator, model_serializer

from r2med.evaluation.records.answer_facts import AnswerFacts
from r2med.evaluation.records.record_facts import DatasetFacts, FileFacts, QueryFacts, RecordPart, RunFacts, StageFacts
from r2med.evaluation.records.repeats import REPEAT, repeat_of
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest
from r2med.foundation.store.files import sha256, write_json

APART_SUFFIX = ".apart.json"
"""The end of the name of a record that no board or comparison finds: see `set_apart`."""
ANSWERS_SUFFIX = ".answers.json"
"""The end of the name of a record of answers. The answers themselves are in a file that ends in `.answers.jsonl`."""

Kind = Literal["ranking", "answers"]
"""What a record is about: the ranking of a system, or the answers of a reader to what the system ranked."""
FORMATS: Mapping[Kind, int] = {"ranking": 2, "answers": 4}
"""Kind -> the number of its format. Up to format 3, records of answers were of another shape."""
_KEYED_AS: Mapping[Kind, tuple[str, int]] = {"ranking": ("record", 2), "answers": ("answers", 3)}
"""Kind -> how its keys begin. The last change of the shape changed no score, so it left the keys."""
_COMMANDS: Mapping[Kind, str] = {"ranking": "r2med run", "answers": "r2med answer"}


class OtherFormatError(UserError):
    """A record of an earlier or later version."""


def record_key(settings: Mapping[str, Any], fingerprint: str, kind: Kind = "ranking") -> str:
    """Return the key of a record: a digest of its kind, the settings and the fingerprint of the dataset."""
    return digest([*_KEYED_AS[kind], settings, fingerprint])


class Record(RecordPart):
    """One system on one dataset, or one reader of its results. Values of measures are between 0 and 1.

    In a record of answers, the scores of the ranking are those of the questions that were asked.
    """

    format: int = FORMATS["ranking"]
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
    queries: dict[str, QueryFacts] = Field(default_factory=dict)
    """The facts of every judged query."""
    run: RunFacts | None = None
    """The file with the rankings."""
    traces: FileFacts | None = None
    """The file with the conversations of a search agent."""
    generated: FileFacts | None = None
    """The file with the texts of an expansion: query -> texts."""
    stages: tuple[StageFacts, ...]
    """Cost and failures of each stage, in order."""
    seeds: dict[str, int] = Field(default_factory=dict)
    """Seeds of what is random, by name."""
    versions: dict[str, str]
    """Package -> its version, for packages that can affect a score."""
    vector_versions: dict[str, list[str]] = Field(default_factory=dict)
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
    answers: AnswerFacts = Field(default_factory=AnswerFacts)
    """What a reader answered. In the record of a ranking it is empty, and its file does not have it."""

    @field_validator("settings")
    @classmethod
    def _has_valid_repeat(cls, settings: dict[str, Any]) -> dict[str, Any]:
        from r2med.foundation.runtime.setup import MOST_REPEATS  # not at the top: reading a record loads few modules

        repeat = settings.get(REPEAT, 1)
        if type(repeat) is not int or not 1 <= repeat < MOST_REPEATS:
            most = MOST_REPEATS - 1
            raise ValueError(f"the repeat in its settings is {str(repeat)[:20]!r}; it must be from 1 to {most}")
        return settings

    @model_serializer(mode="wrap")
    def _only_what_it_has(self, as_json: SerializerFunctionWrapHandler) -> dict[str, Any]:
        body: dict[str, Any] = as_json(self)
        if self.kind == "ranking":
            body.pop("answers", None)
        return body

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {self.mean[name]:.4f}" for name in ("nDCG@10",) if name in self.mean)
        return f"Record({self.display_name} on {self.dataset.name}: {shown})"

    @property
    def kind(self) -> Kind:
        """What the record is about: a ranking, or answers."""
        return "answers" if self.answers.reader else "ranking"

    @property
    def display_name(self) -> str:
        """The name in tables: the given one, or the system as typed, followed by the reader of its results."""
        typed = f"{self.system} · {self.answers.reader}" if self.answers.reader else self.system
        return self.name or typed

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

    def cost_of(self, stage: str) -> Cost:
        """Return the cost of the stages of one kind, without preparing the corpus."""
        return total(facts.cost for facts in self.stages if facts.stage == stage)

    def write(self, path: Path | str) -> None:
        """Write the record with its checksum to its file, completely or not at all."""
        body = self.model_dump(mode="json")
        write_json(Path(path), {**body, "checksum": digest(body)})

    @classmethod
    def read(cls, path: Path | str) -> Record:
        """Read a record. Raises UserError if it was changed or truncated, or has another format."""
        try:
            content = Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise UserError(f"{path}: there is no such record") from None
        return cls.parse(content, path)

    @classmethod
    def parse(cls, content: bytes, path: Path | str) -> Record:
        """Return the record in the bytes of a file. `path` is its name in messages.

        Raises UserError if the file was changed or truncated, or has another format.
        """
        no_record = UserError(f"{path} is not a record of r2med, or it was cut off: run it again")
        try:
            body = json.loads(content)
            checksum, written = body.pop("checksum"), body["format"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise no_record from None
        kind: Kind = "answers" if "answers" in body else "ranking"
        if written != FORMATS[kind]:
            again = f"{_COMMANDS[kind]} {str(body.get('system', 'SYSTEM'))!r}"
            raise OtherFormatError(
                f"{path} is a record of format {written}, but this version reads format {FORMATS[kind]}: "
                f"make it again with {again}"
            )
        try:
            is_untouched = checksum == digest(body)  # a ValueError if the file contains NaN
            record = cls(**body)
        except (ValueError, TypeError, ValidationError):
            raise no_record from None
        if not is_untouched:
            raise UserError(f"{path} was altered after it was written: run it again")
        for facts in record.files:
            # Otherwise the record of another person could make a board show any file.
            if not facts.file or Path(facts.file).name != facts.file:
                raise UserError(f"{path} names {facts.file[:200]}, which is not a file beside it: run it again")
        return record

    @property
    def files(self) -> tuple[FileFacts, ...]:
        """The files beside the record."""
        return tuple(filter(None, (self.run, self.traces, self.generated, self.answers.file)))

    def files_are_sound(self, folder: Path | str) -> bool:
        """Return True if the files beside the record are those it was made with."""
        return not self.unsound_file(folder)

    def unsound_file(self, folder: Path | str) -> str:
        """Return the name of the first file beside the record that is missing or changed; empty if all are sound."""
        for facts in self.files:
            try:
                checked_file(Path(folder) / facts.file, facts.sha256, "run it again")
            except UserError:
                return facts.file
        return ""


def checked_file(file: Path, sha: str, again: str) -> Path:
    """Return the path of a file beside a record. Every command that reads such a file asks for its path here.

    `sha` is the SHA-256 that the record states, and `again` is the end of the message: how to make the file again.
    Raises UserError if the file is missing, cannot be read, or was changed.
    """
    if not file.is_file():  # a pipe would be read for ever
        raise UserError(f"{file} is missing: {again}")
    try:
        is_same = sha256(file) == sha
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}): {again}") from None
    if not is_same:
        raise UserError(f"{file} was changed after its record was written: {again}")
    return file


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
