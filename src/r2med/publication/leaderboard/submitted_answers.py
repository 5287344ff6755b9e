"""The answer records of an entry: which are submitted, what of them is public, and which values none can have."""

from __future__ import annotations

import datetime
import logging
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.evaluation.records.answer_facts import AnswerFacts
from r2med.evaluation.records.answer_views import MAIN_MEASURE, answer_failures
from r2med.evaluation.records.answer_words import Condition
from r2med.evaluation.records.collection import collect, record_files
from r2med.evaluation.records.public_values import public_value
from r2med.evaluation.records.record import ANSWERS_SUFFIX, FORMATS, Record, record_key
from r2med.evaluation.records.record_checks import record_faults
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError

log = logging.getLogger("r2med")

SIGNS = "→ + ( ) [ ] , = : @ . _ / -"
"""The signs that a name may have beside letters, digits and spaces."""

NAME = rf"[A-Za-z0-9{re.escape(SIGNS)}]+"
"""What a name in an entry looks like."""


def submitted_sources(sources: Sequence[str | Path], results: Path) -> tuple[list[str | Path], list[StoredRecord]]:
    """Return the sources of records, and the answer records of these sources.

    A folder may have both. The name of a system means its records and the answers that were read from it; the name of
    a reader, or of a system with its reader, means answers only.
    """
    answer_files = record_files(results, "answers")
    if not answer_files and not sources:
        return [], []
    ranked: list[str | Path] = []
    answered: list[str | Path] = []
    here = collect([results], kind="answers").runs_of_all if answer_files else ()
    systems = {each.record.system for each in here}
    others = {name for each in here for name in (each.record.answers.reader, each.record.display_name)}
    for source in sources or [results]:
        path = Path(source)
        if path.is_dir():
            has_answers = bool(record_files(path, "answers"))
            answered += [source] if has_answers else []
            ranked += [source] if record_files(path) or not has_answers else []
        elif path.exists():
            (answered if path.name.endswith(ANSWERS_SUFFIX) else ranked).append(source)
        else:
            answered += [source] if str(source) in systems | others else []
            ranked += [source] if str(source) not in others - systems else []
    return ranked, list(collect(answered, results, kind="answers").runs_of_all) if answered else []


def without_failed_answers(kept: Sequence[StoredRecord], max_failures: float) -> list[StoredRecord]:
    """Return the answer records without those that failed too often. A note names each that is left out."""
    sound = []
    for each in kept:
        faults = [answer_failures(each, condition, max_failures) for condition in each.record.answers.statuses]
        if fault := next(filter(None, faults), ""):
            log.warning("%s: it is left out", fault)
        else:
            sound.append(each)
    return sound


def public_answers(kept: StoredRecord, keys: Mapping[str, str]) -> Record:
    """Return a record without paths and addresses of this machine. Raises UserError if its answers are missing.

    `keys` maps the key of a ranking to its key in the entry. A failed answer counts 0, so that no failure helps.
    """
    record = kept.record
    if record.answers.file is None:
        raise UserError(f"{kept.path}: this record has no file of answers: r2med answer makes it again")
    given = kept.given()  # raises UserError if the file is missing or was changed
    body = record.model_dump(mode="json", exclude={"name", "named", "traces"})  # conversations are not submitted
    body |= public_value({name: body[name] for name in ("system", "settings")})
    answers, settings = body["answers"], body["settings"]
    answers |= public_value({name: answers[name] for name in ("reader", "notices", "judge")})
    for stage in body["stages"]:
        stage |= public_value({"name": stage["name"]})
    if settings.get("retrieval") in keys:
        settings["retrieval"] = keys[settings["retrieval"]]
    body["key"] = record_key(settings, record.dataset.fingerprint, "answers")
    if failed := {(each.query, each.condition) for each in given if each.status == "failed"}:
        answers |= _with_failures(record.answers, failed)
    names = f"{slug(body['system'])[:100]}__{slug(answers['reader'])[:50]}"
    answers["file"]["file"] = f"{names}-{body['key'][:10]}.answers.jsonl"
    return Record(**body)


def failed_scores(measures: Iterable[str]) -> dict[str, float]:
    """Return the scores of a failed answer in an entry: 0 in each measure of its condition, and in accuracy."""
    return dict.fromkeys([MAIN_MEASURE, *measures], 0.0)


def _with_failures(answers: AnswerFacts, failed: Collection[tuple[str, Condition]]) -> dict[str, Any]:
    """Return scores and means in which failed answers count 0."""
    per_query = {condition: dict(rows) for condition, rows in answers.per_query.items()}
    for query, condition in failed:
        per_query[condition][query] = failed_scores(answers.mean[condition])
    return {"per_query": per_query, "mean": {condition: means_of(rows) for condition, rows in per_query.items()}}


def means_of(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return measure -> mean over the queries that have a value."""
    values: dict[str, list[float]] = {}
    for scores in rows.values():
        for measure, value in scores.items():
            values.setdefault(measure, []).append(value)
    return {measure: math.fsum(each) / len(each) for measure, each in values.items()}


def submitted_answer_faults(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
    """Yield (name, fault) for values that the types allow but no entry can have."""
    cells = [
        (each.display_name, each.answers.passages, each.answers.form, each.dataset.name, each.repeat)
        for each in records
    ]
    for record, cell in zip(records, cells, strict=True):
        name = f"{record.display_name[:200]} on {record.dataset.name[:200]}"
        if cells.count(cell) > 1:
            yield name, "it has two answer records"
        yield from ((name, fault) for fault in _faults(record))


def _faults(record: Record) -> Iterator[str]:
    if record.kind != "answers":
        yield "it is a record of a ranking, among those of answers"
    if record.format != FORMATS["answers"]:
        yield f"an answer record of format {record.format}, but this version reads format {FORMATS['answers']}"
    if record.answers.file is None:
        yield "the entry must name the file of its answers"
    elif re.search(r"[/\\\0]", record.answers.file.file):
        yield f"its answers have a path instead of a name: {record.answers.file.file[:200]}"
    yield from record_faults(record)
    yield from name_faults((record.system, record.answers.reader, record.dataset.name), record.created)
    if record.answers.passages < 1:
        yield f"it states {record.answers.passages} passages"


def name_faults(names: Sequence[str], created: str) -> Iterator[str]:
    """Yield faults of names and of a creation time."""
    for name in names:
        yield from unclear_name(name)
    if not _is_date(created):
        yield f"its creation time {created[:60]!r} is not a date"


def unclear_name(name: str) -> Iterator[str]:
    """Yield a fault if a name has other characters than a board shows: two names that differ must look different."""
    if not re.fullmatch(NAME, name) or name != name.strip():
        yield f"the name {name[:200]!a} must have only letters from A to z, digits, spaces and {SIGNS}"


def _is_date(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
