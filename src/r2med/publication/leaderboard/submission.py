"""Write and read entries: records in one checked file, without paths or addresses of the machine that made them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from r2med.evaluation.measure import DEFAULT_MEASURES, HEADLINE_MEASURE
from r2med.evaluation.measure.measures import RECORDED_MEASURES
from r2med.evaluation.records.collection import MAX_FAILURES, collect
from r2med.evaluation.records.lock_file import locks_among
from r2med.evaluation.records.public_values import public_value, refuse_secrets
from r2med.evaluation.records.record import FORMATS, Record, record_key
from r2med.evaluation.records.record_checks import LARGEST, record_faults
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.records.repeats import repeat_fault
from r2med.foundation.core.errors import UserError, explained
from r2med.foundation.store import digest
from r2med.foundation.store.files import strict_json, write_atomically
from r2med.foundation.text.terminal_text import quoted
from r2med.publication.leaderboard.lock_faults import lock_faults
from r2med.publication.leaderboard.submitted_answers import (
    name_faults,
    public_answers,
    submitted_answer_faults,
    submitted_sources,
    unclear_name,
    without_failed_answers,
)

FORMAT = 1

LONGEST_TEXT = 4096
"""Maximum number of characters of a text in an entry. Settings and ids are shorter. Longer texts may be documents."""

DEEPEST = 40
"""Maximum depth of nested values in an entry. Real settings have a depth of about twelve."""


class Entry(BaseModel):
    """The records that are submitted, without the files beside them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    """The number of this format."""
    records: tuple[Record, ...]
    """The records, without the files beside them."""
    answers: tuple[Record, ...] = ()
    """The answer records, without the files of their answers."""


def write_entry(sources: Sequence[str | Path], path: Path, results: Path, max_failures: float = MAX_FAILURES) -> Entry:
    """Write the records of sources as one entry. Raises UserError if a file of a record is missing or was changed."""
    ranked, answered = submitted_sources(sources, results)
    kept = collect(ranked, results, max_failures).runs_of_all if ranked or not answered else ()
    for each in kept:
        if each.record.run is None:
            raise UserError(f"{each.path}: this record has no run file: {each.how_to_make_it_again}")
        if unsound := each.record.unsound_file(each.path.parent):
            raise UserError(f"{each.path}: {unsound} is missing or was changed: {each.how_to_make_it_again}")
    records = tuple(_public(each.record) for each in kept)
    keys = {each.record.key: public.key for each, public in zip(kept, records, strict=True)}
    answers = tuple(public_answers(each, keys) for each in without_failed_answers(answered, max_failures))
    entry = Entry(records=records, answers=answers)
    # An entry without answers has no empty list of them.
    body = entry.model_dump(mode="json", exclude=set() if answers else {"answers"})
    _check_entry(entry, path)
    _check_locks(records, [results, *map(Path, sources)], path)
    _check_leaves(body, path)
    refuse_secrets(json.dumps(body, ensure_ascii=False), "entry")
    parts = {
        name: ",\n".join(json.dumps(record, ensure_ascii=False) for record in body[name])
        for name in ("records", "answers")
        if name in body
    }
    lists = ", ".join(f'"{name}": [\n{lines}\n]' for name, lines in parts.items())
    text = f'{{"format": {FORMAT}, "checksum": "{digest(body)}", {lists}}}\n'
    write_atomically(path, text.encode())
    return entry


def read_entry(path: Path) -> Entry:
    """Read an entry. Raises UserError if it was altered or contains values that no entry can have."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # reading a device would never end
        raise UserError(f"{path}: this entry is not a file")
    try:
        body = strict_json(path.read_bytes())
        checksum, written = body.pop("checksum"), body["format"]
    except FileNotFoundError:
        raise UserError(f"{path}: no such entry") from None
    except OSError as error:
        raise UserError(f"{path}: this entry cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f"{path} is not an entry of r2med, or it was cut off: make it again with r2med submit"
        ) from None
    for fault in unclear_name(path.stem):
        raise UserError(f"{path}: {fault}")
    if "records" not in body:
        raise UserError(f"{path} is not an entry of r2med: make one of records with r2med submit {quoted(path)}")
    if written != FORMAT:
        raise UserError(f"{path} is an entry of format {str(written)[:40]}, but this version reads format {FORMAT}")
    try:
        _check_leaves(body, path)
        untouched = checksum == digest(body)  # a ValueError for NaN and infinity
        entry = Entry(**body)
    except ValidationError as error:
        raise UserError(f"{path} is not an entry of r2med: {explained(error)[:400]}") from None
    except (ValueError, TypeError, RecursionError):
        raise UserError(
            f"{path} is not an entry of r2med: it contains a value that is not a number, such as NaN"
        ) from None
    if not untouched:
        raise UserError(f"{path} was altered after it was written: make it again with r2med submit")
    _check_entry(entry, path)
    return entry


def entry_files(places: Sequence[Path]) -> list[Path]:
    """Return the entries that paths name: a file is one, and a folder holds all its JSON files, at any depth.

    `verify` and `board` both use this list, so that a board has no entry that was not checked. Hidden files count.
    """
    found = (sorted(place.rglob("*.json")) if place.is_dir() else [place] for place in places)
    return list(dict.fromkeys(file for files in found for file in files))


def _public(record: Record) -> Record:
    """Return a record without paths and addresses of this machine, and without files that are not submitted."""
    body = record.model_dump(mode="json", exclude={"traces", "generated", "named"})
    body |= public_value({name: body[name] for name in ("system", "settings", "name")})
    for stage in body["stages"]:
        stage |= public_value({"name": stage["name"]})
    body["key"] = record_key(body["settings"], record.dataset.fingerprint)  # of the settings that others see
    body["run"]["file"] = f"{slug(body['system'])[:100]}-{body['key'][:10]}.trec.gz"
    return Record(**body)


def _check_entry(entry: Entry, path: Path) -> None:
    """Raise UserError for values that the types allow but no entry can have."""
    if not entry.records and not entry.answers:
        raise UserError(f"{path} has no records")
    for name, fault in submitted_answer_faults(entry.answers):
        raise UserError(f"{path}: {name[:400]}: {fault}")
    if fault := repeat_fault(
        (
            f"{each.display_name} ({each.answers.passages} passages, {each.answers.form})",
            each.dataset.name,
            each.settings,
        )
        for each in entry.answers
    ):
        raise UserError(f"{path}: {fault}")
    if fault := repeat_fault((record.display_name, record.dataset.name, record.settings) for record in entry.records):
        raise UserError(f"{path}: {fault}")
    for record in entry.records:
        for fault in _faults(record):
            raise UserError(f"{path}: {record.display_name[:200]} on {record.dataset.name[:200]}: {fault}")


def _check_locks(records: Sequence[Record], places: Sequence[Path], path: Path) -> None:
    """Raise UserError for a record that `verify` would refuse because of its lock, such as one with too few repeats.

    Locks are found below and beside the folders of the records: `r2med lock` writes one beside the folder `results`.
    """
    if not any(record.lock for record in records):
        return
    files = [file for place in places for file in (*place.rglob("*"), *place.absolute().parent.glob("*.lock"))]
    locks, runs = locks_among(files), Counter((record.display_name, record.dataset.name) for record in records)
    for record in records:
        for fault in lock_faults(record, locks, runs[record.display_name, record.dataset.name]):
            raise UserError(f"{path}: {record.display_name[:200]} on {record.dataset.name[:200]}: {fault}")


def _faults(record: Record) -> Iterator[str]:
    if record.kind != "ranking":
        yield "it is a record of answers, among those of rankings"
    if record.format != FORMATS["ranking"]:
        yield f"a record of format {record.format}, but this version reads format {FORMATS['ranking']}"
    if record.run is None or record.traces is not None or record.generated is not None:
        yield "the entry must name exactly one run file, and no other file"
    elif re.search(r"[/\\\0]", record.run.file):
        yield f"its run has a path instead of a name: {record.run.file[:200]}"
    yield from record_faults(record)
    if record.apart:
        yield f"it does not belong among other systems: {record.apart}"
    yield from name_faults((record.system, record.display_name, record.dataset.name), record.created)
    if not isinstance(record.settings.get("retrieve"), Mapping):
        yield "its settings are not those of a system"
    yield from _measure_faults(record)
    for query, values in {"the mean": record.mean, **record.per_query}.items():
        if wrong := next((name for name, value in values.items() if not 0 <= value <= 1), None):
            yield f"{wrong} of {query} is {values[wrong]}; scores must be between 0 and 1"
    for name, value in record.mean.items():
        mean = math.fsum(values[name] for values in record.per_query.values()) / len(record.per_query)
        if not math.isclose(mean, value, abs_tol=1e-9):
            yield f"{name} is {value}, but the mean of its queries is {mean}"


def _measure_faults(record: Record) -> Iterator[str]:
    """Yield faults that would stop a board: missing or unknown measures, and queries without facts."""
    known = {str(measure) for measure in DEFAULT_MEASURES}
    if str(HEADLINE_MEASURE) not in record.mean:
        yield f"it has no {HEADLINE_MEASURE}, the main measure"
    if missing := sorted(known - record.mean.keys()):
        yield f"it has no {missing[0]}"
    if invented := sorted(record.mean.keys() - {*RECORDED_MEASURES}):
        yield f"{invented[0][:60]} is not a measure of r2med's records"
    if record.queries.keys() != record.per_query.keys():
        yield "it has facts about other queries than those it scores"
    if any(rank < 1 for stage in record.stages for ranks in stage.gold.values() for rank in ranks.values()):
        yield "it has a relevant document at a rank below 1"


def _check_leaves(body: Any, path: Path) -> None:
    """Raise UserError for texts and numbers that are too large for a record, and for values nested too deeply."""
    for leaf, depth in _leaves(body):
        if depth > DEEPEST:
            raise UserError(f"{path}: its values are nested deeper than {DEEPEST} levels")
        if isinstance(leaf, str) and len(leaf) > LONGEST_TEXT:
            raise UserError(f"{path}: it contains a text of {len(leaf):,} characters, which begins with {leaf[:60]!r}")
        if isinstance(leaf, int | float) and not abs(leaf) <= LARGEST:
            raise UserError(f"{path}: it contains a number above {LARGEST:g}")


def _leaves(body: Any) -> Iterator[tuple[Any, int]]:
    """Yield every key and every simple value with its depth."""
    waiting = [(body, 0)]
    while waiting:
        value, depth = waiting.pop()
        inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else None
        if inside is None or depth > DEEPEST:
            yield value, depth
        else:
            waiting.extend((part, depth + 1) for part in inside)
