"""Make, write and find the record of a reader that read the results of a system."""

from __future__ import annotations

import datetime
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from r2med.assessment.answers.reader import ReaderAnswers
from r2med.assessment.answers.remarks import remark_notices
from r2med.assessment.answers.scoring import ScoredAnswers
from r2med.assessment.answers.searched_answers import searching_means
from r2med.data.dataset import Dataset
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.records.answer_facts import AnswerFacts, GivenAnswer, answers_path, write_answers
from r2med.evaluation.records.answer_words import SEARCHED, AnswerForm, Condition
from r2med.evaluation.records.dataset_facts import dataset_facts, query_facts
from r2med.evaluation.records.record import ANSWERS_SUFFIX, FORMATS, Record, record_key
from r2med.evaluation.records.record_facts import StageFacts
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.running.new_record import time_of_naming
from r2med.foundation.core.cost import NOTHING, Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import installed_versions, source_digest
from r2med.foundation.net.offline import is_offline
from r2med.foundation.store.sharing import tidy
from r2med.models.llm.chat import FROM_THE_MODEL

log = logging.getLogger("r2med")

_SYSTEM_BYTES, _READER_BYTES = 110, 50
"""Maximum number of bytes of names in a file name, which has at most 255 bytes with its key and suffix."""


def answer_record_path(out: Path, system: str, dataset: str, reader: str, key: str) -> Path:
    """Return the path of an answer record, in the folder of the records of its dataset."""
    name = f"{slug(system, _SYSTEM_BYTES)}__{slug(reader, _READER_BYTES)}-{key[:10]}{ANSWERS_SUFFIX}"
    return out.joinpath(*map(slug, dataset.split("/")), name)


def write_answer_record(
    path: Path,
    settings: dict[str, Any],
    retrieval: Record,
    dataset: Dataset,
    form: AnswerForm,
    passages: int,
    reader: str,
    said: ReaderAnswers,
    scored: ScoredAnswers,
    notices: Sequence[str],
    nuggets: str,
    varies: Mapping[str, bool],
) -> Record:
    """Write the answers and their record, and return the record. `varies` says which stages can give other results."""
    answers = scored.answers
    asked = dict.fromkeys(each.query for each in answers)
    headline = str(HEADLINE_MEASURE)
    ranked = {query: retrieval.per_query[query][headline] for query in asked}
    facts = query_facts(dataset)
    given = AnswerFacts(
        reader=reader,
        form=form,
        passages=passages,
        mean=_means(answers),
        per_query=_per_query(answers),
        statuses=_statuses(answers),
        grades=_grades(answers) if scored.judge else {},
        file=write_answers(answers, path),
        nuggets=nuggets,
        judge=scored.judge,
        costs=dict(said.costs),
        searching=searching_means(answers),
        notices=(*notices, *scored.notices, *remark_notices(answers)),
    )
    record = Record(
        format=FORMATS["answers"],
        key=record_key(settings, dataset.fingerprint, "answers"),
        system=retrieval.system,
        settings=settings,
        dataset=dataset_facts(dataset),
        mean={headline: float(np.mean(list(ranked.values())))},
        per_query={query: {headline: value} for query, value in ranked.items()},
        queries={query: facts[query] for query in asked},
        traces=retrieval.traces if SEARCHED in given.statuses else None,
        stages=tuple(_stages(retrieval, reader, said.cost, scored, varies)),
        versions=installed_versions(),
        source=source_digest(),
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        offline=is_offline(),
        named=time_of_naming(),
        answers=given,
    )
    record.write(path)
    return record


def _stages(
    retrieval: Record, reader: str, reading: Cost, scored: ScoredAnswers, varies: Mapping[str, bool]
) -> Iterator[StageFacts]:
    """Yield the search, without its preparation of the corpus, and the reader and the judge if they were asked."""
    searching = total(stage.cost for stage in retrieval.stages) + Cost(unpriced=int(not retrieval.cost_is_known))
    yield StageFacts(stage="retrieve", name=retrieval.system, cost=searching, varies=varies["retrieve"])
    if reading != NOTHING:
        yield StageFacts(stage="read", name=reader, cost=reading, varies=varies["read"])
    if scored.judge and scored.cost != NOTHING:
        yield StageFacts(stage="judge", name=scored.judge.judge, cost=scored.cost, varies=varies["judge"])


def recorded_answers(path: Path, key: str) -> Record | None:
    """Return an existing record, if it can be used. A damaged record is reported and treated as missing."""
    for file in (path, answers_path(path)):
        tidy(file)
    if not path.is_file():
        return None
    try:
        record = Record.read(path)
        if record.key != key:
            raise UserError(f"{path} has another key than its name: making it again")
        StoredRecord(record, path).given()
    except UserError as damage:
        log.warning("%s", damage)
        return None
    failed = sum(each.get("failed", 0) for each in record.answers.statuses.values()) + _failed_judgements(record)
    # Answers are in the journal, so only failed calls are repeated. Offline, a record made online is made again, so
    # that the new one can say that no text left this machine.
    return None if failed or (is_offline() and not record.offline) else record


def named_again(path: Path, record: Record) -> Record:
    """Note in an existing record that this run named it: of several versions, the one that was named last counts."""
    record = record.model_copy(update={"named": time_of_naming()})
    record.write(path)
    return record


def _failed_judgements(record: Record) -> int:
    """Return the number of questions to the judge that failed on the way, so that asking again can help."""
    final = {*FROM_THE_MODEL, "unreadable", "context_length"}
    failures = record.answers.judge.failures if record.answers.judge else {}
    return sum(count for kind, count in failures.items() if kind not in final)


def _conditions(answers: Sequence[GivenAnswer]) -> dict[Condition, list[GivenAnswer]]:
    parts: dict[Condition, list[GivenAnswer]] = {}
    for each in answers:
        parts.setdefault(each.condition, []).append(each)
    return parts


def _per_query(answers: Sequence[GivenAnswer]) -> dict[Condition, dict[str, dict[str, float]]]:
    return {condition: {each.query: each.scores for each in part} for condition, part in _conditions(answers).items()}


def _means(answers: Sequence[GivenAnswer]) -> dict[Condition, dict[str, float]]:
    means: dict[Condition, dict[str, float]] = {}
    for condition, part in _conditions(answers).items():
        measures = dict.fromkeys(measure for each in part for measure in each.scores)
        means[condition] = {
            measure: float(np.mean([each.scores[measure] for each in part if measure in each.scores]))
            for measure in measures
        }
    return means


def _statuses(answers: Sequence[GivenAnswer]) -> dict[Condition, dict[Any, int]]:
    return {condition: dict(Counter(each.status for each in part)) for condition, part in _conditions(answers).items()}


def _grades(answers: Sequence[GivenAnswer]) -> dict[Condition, dict[Any, int]]:
    return {
        condition: dict(Counter(each.grade for each in part if each.grade))
        for condition, part in _conditions(answers).items()
    }
