"""The answers that the explorer shows under a ranking: a file for each system and query, with all of its readers.

The texts are by LLMs, so the page shows them only as text, and this file limits their lengths and numbers.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from r2med.data import Dataset
from r2med.data.nuggets_file import Nugget, Nuggets, nuggets_of
from r2med.evaluation.records.answer_facts import AnswerFacts, GivenAnswer
from r2med.evaluation.records.answer_words import CONDITIONS
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.publication.site.answer_labels import MEASURES

log = logging.getLogger("r2med")

ANSWER_SHOWN = 6_000
"""Number of characters of an answer that are shown."""
MAX_SENTENCES = 100
MAX_READ = 100
MAX_NUGGETS = 100
MAX_OPTIONS = 26
REASON_SHOWN = 1_500
"""Number of characters of a reason, an option or a nugget that are shown."""
PASSAGE_SHOWN = 1_500
"""Number of characters of a passage that are shown, if no ranking shows it."""


@dataclass(frozen=True)
class _Reading:
    """The answers of one reader to one query, by condition."""

    facts: AnswerFacts
    answers: Sequence[GivenAnswer]


def answer_files(
    answers: Mapping[int, Sequence[StoredRecord]],
    dataset: Dataset,
    shown: Mapping[str, Mapping[str, int]],
    folder: str,
) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of a file for each system and query with answers, and an index of them.

    `answers` are number of a system -> its records on the dataset. `shown` are the documents of each query's file.
    """
    index = []
    nuggets = _nuggets_beside(dataset)
    for number, records in answers.items():
        readings = _readings(records, shown)
        texts = _more_texts(dataset, shown, readings)
        positions = []
        for position, query in enumerate(shown):
            if query in readings:
                positions.append(position)
                value = _query_file(query, readings[query], dataset, shown[query], texts, nuggets)
                yield f"{folder}/a{number}-{position}", value
        index.append({"system": number, "queries": positions})
    yield f"{folder}/answers", index


def _readings(records: Sequence[StoredRecord], shown: Mapping[str, Any]) -> dict[str, list[_Reading]]:
    """Return query -> the answers of each reader. A record whose answers are missing is reported and left out."""
    readings: dict[str, list[_Reading]] = {}
    for each in records:
        try:
            given = each.given()
        except UserError as error:
            log.warning("not in the explorer: %s", error)
            continue
        by_query: dict[str, list[GivenAnswer]] = {}
        for answer in given:
            if answer.query in shown:
                by_query.setdefault(answer.query, []).append(answer)
        for query, answers in by_query.items():
            ordered = sorted(answers, key=lambda answer: CONDITIONS.index(answer.condition))
            readings.setdefault(query, []).append(_Reading(each.record.answers, ordered))
    return readings


def _more_texts(
    dataset: Dataset, shown: Mapping[str, Mapping[str, int]], readings: Mapping[str, Sequence[_Reading]]
) -> dict[str, str]:
    """Return the texts of passages that were read, and that the files of their queries do not have."""
    wanted = sorted(
        {
            document
            for query, each in readings.items()
            for document in _read_documents(each)
            if document not in shown[query]
        }
    )
    rows = dataset.corpus.rows(wanted)
    known = [document for document, row in zip(wanted, rows, strict=True) if row >= 0]
    return dict(zip(known, dataset.corpus.texts(rows[rows >= 0]), strict=True))


def _read_documents(readings: Sequence[_Reading]) -> dict[str, None]:
    return dict.fromkeys(
        document for reading in readings for answer in reading.answers for document in answer.read[:MAX_READ]
    )


def _query_file(
    query: str,
    readings: Sequence[_Reading],
    dataset: Dataset,
    shown: Mapping[str, int],
    texts: Mapping[str, str],
    nuggets: Nuggets | None,
) -> dict[str, Any]:
    more = [document for document in _read_documents(readings) if document not in shown]
    places = {**shown, **{document: len(shown) + number for number, document in enumerate(more)}}
    grades = dataset.qrels.get(query, {})
    return {
        "more": [_passage(document, texts.get(document), grades.get(document)) for document in more],
        "readers": [
            {
                "reader": reading.facts.reader,
                "passages": reading.facts.passages,
                "judge": reading.facts.judge.judge if reading.facts.judge else "",
                "own_family": bool(reading.facts.judge and reading.facts.judge.own_family),
                "answers": [_answer(answer, places, _known(reading, query, nuggets)) for answer in reading.answers],
            }
            for reading in readings
        ],
    }


def _nuggets_beside(dataset: Dataset) -> Nuggets | None:
    """Return the nuggets of a dataset. Those of a faulty file are shown by their ids."""
    try:
        return nuggets_of(dataset)
    except UserError as error:
        log.warning("the explorer shows nuggets without their texts: %s", error)
        return None


def _known(reading: _Reading, query: str, nuggets: Nuggets | None) -> dict[str, Nugget]:
    """Return the nuggets of a query by id, if they are those that the answers were scored with."""
    if nuggets is None or nuggets.digest != reading.facts.nuggets:
        return {}
    return {nugget.id: nugget for nugget in nuggets.by_query.get(query, ())}


def _passage(document: str, text: str | None, grade: int | None) -> dict[str, Any]:
    left = max(0, len(text) - PASSAGE_SHOWN) if text is not None else 0
    shown = text[:PASSAGE_SHOWN] if text is not None else None
    return {"id": document, "text": shown, "before": 0, "after": left, "grade": grade, "copy": None}


def _answer(answer: GivenAnswer, places: Mapping[str, int], nuggets: Mapping[str, Nugget]) -> dict[str, Any]:
    read = answer.read[:MAX_READ]
    return {
        "condition": answer.condition,
        "status": answer.status,
        "failure": answer.failure[:REASON_SHOWN],
        "text": answer.text[:ANSWER_SHOWN],
        "left_out": max(0, len(answer.text) - ANSWER_SHOWN),
        "sentences": list(_sentences(answer, read)),
        "read": [places[document] for document in read],
        "cut": answer.cut,
        "tokens": answer.tokens,
        "options": [option[:REASON_SHOWN] for option in answer.options[:MAX_OPTIONS]],
        "choice": answer.choice,
        "by_rule": answer.by_rule,
        "grade": answer.grade,
        "remarks": list(answer.remarks),
        "why": answer.why[:REASON_SHOWN],
        "nuggets": list(_nuggets(answer, nuggets)),
        "statements": {"found": answer.statements_found, "all": answer.statements},
        "scores": {
            each.name: value for each in MEASURES if math.isfinite(value := answer.scores.get(each.name, math.nan))
        },
    }


def _nuggets(answer: GivenAnswer, known: Mapping[str, Nugget]) -> Iterator[dict[str, Any]]:
    """Yield each nugget: its text or id, if it is vital (None if this is not known), and if the answer contains it."""
    for name, found in list(answer.nuggets.items())[:MAX_NUGGETS]:
        nugget = known.get(name)
        text = (nugget.text if nugget else name)[:REASON_SHOWN]
        yield {"text": text, "vital": nugget.vital if nugget else None, "found": found}


def _sentences(answer: GivenAnswer, read: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield each sentence: its text, the numbers of the cited passages, unknown citations, and if it is supported.

    A document that the answer did not read is an unknown citation, whatever the record says.
    """
    number_of = {document: number for number, document in enumerate(read)}
    room = ANSWER_SHOWN
    for sentence in answer.sentences[:MAX_SENTENCES]:
        if room <= 0:
            return
        cited = sorted({number_of[document] for document in sentence.documents if document in number_of})
        unknown = sentence.unknown + sum(document not in number_of for document in sentence.documents)
        text = sentence.text[:room]
        yield {"text": text, "cited": cited, "unknown": unknown, "supported": sentence.supported}
        room -= len(sentence.text)
