"""Collect answer records, and view one measure of them as records, so that all of comparison works on answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from r2med.evaluation.measure.measures import ANSWER_FAMILIES, Measure
from r2med.evaluation.records.answer_checks import answer_faults
from r2med.evaluation.records.answer_record import SUFFIX, AnswerRecord, GivenAnswer
from r2med.evaluation.records.answer_words import CONDITIONS, Condition
from r2med.evaluation.records.collection import MAX_FAILURES, checked, sound_records
from r2med.evaluation.records.record import Record, StageFacts
from r2med.evaluation.records.sealed_json import OtherFormatError
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.spec import named_system
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted

log = logging.getLogger("r2med")

MAIN_MEASURE = "accuracy"
RETRIEVED: Condition = "retrieved"


@dataclass(frozen=True)
class StoredAnswers:
    """An answer record and its path."""

    record: AnswerRecord
    path: Path
    is_entry: bool = False
    """True if the path is that of an entry. Files beside an entry do not belong to the record."""
    unverified: str = ""
    """Why the record of an entry is not verified; empty if it is, and for records that were made here."""
    entry: str = ""
    """The names of the entries with this record, separated by commas; empty for records that were made here."""
    repeats: tuple[AnswerRecord, ...] = ()
    """The records of several repeats, if `record` has the means over them."""

    @property
    def runs(self) -> tuple[AnswerRecord, ...]:
        """The record of each run."""
        return self.repeats or (self.record,)

    def given(self) -> tuple[GivenAnswer, ...]:
        """Return all answers. Raises UserError if their file is missing or was changed. An entry has no answers."""
        return () if self.is_entry else self.record.given(self.path.parent)


@dataclass(frozen=True)
class AnswerViews:
    """One measure of answer records, as records of systems with their readers."""

    collection: RecordCollection
    """A record for each system with its reader and each dataset. All records of a dataset have the same questions."""
    measure: str
    notices: tuple[str, ...]
    """What was left out and what the scores depend on, one sentence each, without a full stop."""


@dataclass(frozen=True)
class AnswerCollection:
    """At most one answer record for each system, reader, number of passages, form, dataset and repeat."""

    kept: tuple[StoredAnswers, ...]
    notices: tuple[str, ...] = field(default=(), compare=False)
    """Which records were left out, one sentence each, without a full stop."""

    def __iter__(self) -> Iterator[StoredAnswers]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def name_of(self) -> Callable[[AnswerRecord], str]:
        """Return system and reader of a record, with the number of passages or the form where these tell two apart."""
        return _naming(self.kept)

    def views(
        self,
        measure: str = MAIN_MEASURE,
        condition: Condition | str = RETRIEVED,
        max_failures: float = MAX_FAILURES,
    ) -> AnswerViews:
        """Return one measure of the answers of one condition as records that can be compared.

        Only the questions count that every record of a dataset has a value for. Raises UserError if no record has the
        measure. A record is left out with a notice if a larger share of its answers failed than `max_failures`.
        """
        name, where = answer_measure(measure), answer_condition(condition)
        having = [each for each in self.kept if _values(each.record, name, where)]
        lacking = [self._lacking(each, name, where) for each in self.kept if each not in having]
        if not having:
            raise UserError(f"no record has {name} of answers in the condition {where!r}: {_how_to_have(name)}")
        faults = [answer_failures(each, where, max_failures) for each in having]
        if all(faults):
            raise UserError(faults[0])
        left_out = [f"{fault}: it is left out" for fault in faults if fault]
        having = [each for each, fault in zip(having, faults, strict=True) if not fault]
        by_dataset: dict[str, list[StoredAnswers]] = {}
        for each in having:
            by_dataset.setdefault(each.record.dataset.name, []).append(each)
        views: list[StoredRecord] = []
        notices = [*self.notices, *lacking, *left_out]
        for dataset, asked_alike in by_dataset.items():
            _refuse_mixed_forms(asked_alike)
            group = _largest_group(asked_alike)
            notices += [self._half_run(each, group) for each in asked_alike if each not in group]
            shared, asked = _shared_questions(group, name, where)
            if left := asked - len(shared):
                why = "because not every record has a value for them"
                notices.append(f"{dataset}: {left:,} of {asked:,} questions are left out, {why}")
            if shared:
                views += [self._view(each, name, where, shared) for each in group]
        if not views:
            raise UserError(f"no question has {name} in all records: {notices[-1]}")
        return AnswerViews(checked(views), name, (*notices, *self._remarks(having)))

    def _half_run(self, each: StoredAnswers, group: Sequence[StoredAnswers]) -> str:
        name = f"{self.name_of(each.record)} on {each.record.dataset.name}"
        most = min(len(other.record.queries) for other in group)
        return f"{name} is left out: it answers {len(each.record.queries):,} questions, and others {most:,} or more"

    def _lacking(self, each: StoredAnswers, measure: str, condition: Condition) -> str:
        name = f"{self.name_of(each.record)} on {each.record.dataset.name}"
        return f"{name} is left out: no {measure} of {condition} answers"

    def _view(self, each: StoredAnswers, measure: str, condition: Condition, shared: Sequence[str]) -> StoredRecord:
        record = each.record
        values = _values(record, measure, condition)
        view = Record(
            key=record.key,
            system=self.name_of(record),
            settings=record.settings,
            dataset=record.dataset,
            mean={measure: sum(values[query] for query in shared) / len(shared)},
            per_query={query: {measure: values[query]} for query in shared},
            queries={query: record.queries[query] for query in shared},
            stages=(
                StageFacts(
                    stage="retrieve",
                    name=record.name,
                    cost=record.cost_of(condition) or Cost(unpriced=1),
                    varies=record.varies,
                ),
            ),
            versions=record.versions,
            source=record.source,
            created=record.created,
            offline=record.offline,
        )
        return StoredRecord(view, each.path, each.is_entry)

    def _remarks(self, having: Sequence[StoredAnswers]) -> Iterator[str]:
        """Yield what the scores depend on: different judges, and the notices of the records."""
        judges = {each.record.judge.judge if each.record.judge else "no LLM" for each in having}
        if len(judges) > 1:
            yield f"the answers were judged by different judges ({', '.join(sorted(judges))}), which may differ"
        said: dict[str, list[str]] = {}
        for each in having:
            for notice in each.record.notices:
                name = f"{self.name_of(each.record)} on {each.record.dataset.name}"
                said.setdefault(notice.rstrip("."), []).append(name)
        for notice, names in said.items():
            yield f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {notice}"


def collect_answers(sources: Sequence[str | Path] = (), results: Path | str = "results") -> AnswerCollection:
    """Read answer records from files, from folders, or by names in `results`. Without sources, read `results`.

    A name is that of a system, of a reader, or of both as in `bm25 · smollm2`. If there are several records of one
    system and reader on one dataset, the one with the most questions is read, and of these the newest.
    """
    folder = Path(results)
    kept: dict[Path, StoredAnswers] = {}
    everything: list[StoredAnswers] | None = None
    for source in sources or [folder]:
        if Path(source).exists():
            read = _read_all(Path(source))
        else:
            everything = _read_all(folder) if everything is None else everything
            read = _named(str(source), everything)
        kept |= {each.path: each for each in read}
    return newest_of_each(kept.values())


def newest_of_each(kept: Iterable[StoredAnswers]) -> AnswerCollection:
    """Return one record of each system, reader, dataset and repeat: that with the most questions, then the newest."""
    records = tuple(kept)
    name_of = _naming(records)
    best: dict[tuple[str, str, int], StoredAnswers] = {}
    replaced: list[str] = []
    for each in records:
        cell = name_of(each.record), each.record.dataset.name, each.record.repeat
        other = best.setdefault(cell, each)
        if other is not each:
            best[cell] = each if _order(each) > _order(other) else other
            replaced.append(f"{cell[0]} on {cell[1]}")
    return AnswerCollection(tuple(best.values()), tuple(_replaced(replaced)))


def _replaced(names: Sequence[str]) -> Iterator[str]:
    """Yield one notice about all answer records that others replace; nothing if there are none."""
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        older = counted(len(names), "older answer record")
        yield f"{older} left out ({names[0]}{more}): others are newer or have more questions"


def _order(each: StoredAnswers) -> tuple[int, str]:
    return len(each.record.queries), each.record.created


def answer_files(folder: Path) -> list[Path]:
    """Return the answer records in a folder."""
    return sorted(folder.rglob(f"*{SUFFIX}"))


def read_current(files: Iterable[Path]) -> Iterator[tuple[AnswerRecord, Path]]:
    """Yield answer records with their paths. A record of another format is reported and left out."""
    for path in files:
        try:
            yield AnswerRecord.read(path), path
        except OtherFormatError as error:
            log.warning("%s: it is left out", error)


def answer_measure(measure: str) -> str:
    """Return the name of a measure of answers. Raises UserError if it is not one."""
    lowered = measure.strip().lower()
    if lowered not in ANSWER_FAMILIES:
        raise unknown("measure of answers", measure[:60], ANSWER_FAMILIES)
    return str(Measure.parse(lowered))


def answer_condition(condition: str) -> Condition:
    """Return a condition by its name. Raises UserError if there is no such condition."""
    for known in CONDITIONS:
        if known == condition.strip().lower():
            return known
    raise unknown("condition", condition[:60], CONDITIONS)


def _naming(kept: Sequence[StoredAnswers]) -> Callable[[AnswerRecord], str]:
    """Return the function that names the records of a collection. Several records of an entry have the same path."""
    passages: dict[str, set[int]] = {}
    forms: dict[tuple[str, str], set[str]] = {}
    for each in kept:
        passages.setdefault(each.record.name, set()).add(each.record.passages)
        forms.setdefault((each.record.name, each.record.dataset.name), set()).add(each.record.form)
    # Each dataset has its own form. Two forms are two names only if one dataset was asked in both.
    both = {name for (name, _), asked in forms.items() if len(asked) > 1}

    def name_of(record: AnswerRecord) -> str:
        return (
            record.name
            + (f" · {record.passages} passages" if len(passages[record.name]) > 1 else "")
            + (f" · {record.form}" if record.name in both else "")
        )

    return name_of


def _read_all(source: Path) -> list[StoredAnswers]:
    files = [source] if source.is_file() else answer_files(source)
    if not files:
        raise UserError(
            f"there are no answer records in {source}: make some with "
            f"r2med answer bm25 --reader LLM -o {quoted(source)}"
        )
    return [StoredAnswers(record, path) for record, path in sound_records(files, AnswerRecord.read, answer_faults)]


def _named(name: str, everything: Sequence[StoredAnswers]) -> list[StoredAnswers]:
    names = {each.path: (each.record.name, each.record.system, each.record.reader) for each in everything}
    meant = named_system(name, {word for words in names.values() for word in words})
    read = [each for each in everything if meant in names[each.path]]
    if not read:
        known = dict.fromkeys(word for each in everything for word in (each.record.system, each.record.reader))
        raise unknown("answer record, folder, system or reader", name, known)
    return read


def _values(record: AnswerRecord, measure: str, condition: Condition) -> dict[str, float]:
    """Return query -> value of a measure, for the questions that have one."""
    rows = record.per_query.get(condition, {})
    return {query: values[measure] for query, values in rows.items() if measure in values}


def _how_to_have(measure: str) -> str:
    needs = {"nugget": "nuggets", "vital": "nuggets", "citation": "open answers with citations"}
    if measure == MAIN_MEASURE:
        return "open answers have it if a judge reads them: r2med answer SYSTEM --reader LLM --judge LLM"
    needed = needs.get(measure.partition("-")[0], "")
    return f"it needs {needed}, see r2med answer" if needed else "r2med answer asks the questions of all conditions"


def _largest_group(group: Sequence[StoredAnswers]) -> list[StoredAnswers]:
    """Return the records that share the most answers, so that one record of few questions does not cut all others."""
    asked = [frozenset(each.record.queries) for each in group]
    groups = [[each for each, mine in zip(group, asked, strict=True) if questions <= mine] for questions in asked]
    sizes = [
        (len(members) > 1) * len(members) * len(questions) for members, questions in zip(groups, asked, strict=True)
    ]
    return groups[sizes.index(max(sizes))] if max(sizes) else list(group)


def _shared_questions(group: Sequence[StoredAnswers], measure: str, condition: Condition) -> tuple[list[str], int]:
    """Return the questions that all records have a value for, and the number of all questions that were asked."""
    asked = dict.fromkeys(query for each in group for query in each.record.queries)
    known = [_values(each.record, measure, condition) for each in group]
    return [query for query in asked if all(query in values for values in known)], len(asked)


def answer_failures(each: StoredAnswers, condition: Condition, limit: float) -> str:
    """Return a message if a larger share of the answers of a condition failed than `limit`; otherwise empty."""
    counts = each.record.statuses.get(condition, {})
    failed, asked = counts.get("failed", 0), sum(counts.values())
    if failed <= limit * asked:
        return ""
    return (
        f"{each.path}: {failed:,} of {asked:,} questions failed, so its scores say little: r2med answer asks them "
        "again, or allow it with max_failures (--max-failures 1)"
    )


def _refuse_mixed_forms(group: Sequence[StoredAnswers]) -> None:
    first = group[0]
    for each in group:
        if each.record.form != first.record.form:
            raise UserError(
                f"{first.path} has answers of the form {first.record.form} and {each.path} of the form "
                f"{each.record.form}, which cannot be compared: give the paths of one form"
            )
