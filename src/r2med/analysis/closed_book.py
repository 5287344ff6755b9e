"""Which questions an LLM answers right without any passage: from answer records, or asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import nan

from r2med.analysis.judged_texts import judge_texts
from r2med.analysis.material import Material
from r2med.assessment.answers.reader import AnswerReader
from r2med.assessment.answers.reading import asked_queries
from r2med.data.dataset import Dataset, Query
from r2med.evaluation.records.answer_collection import MAIN_MEASURE, UNDECIDED, collect_answers
from r2med.evaluation.records.answer_words import Condition
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.tracing import tracing

CLOSED_BOOK: Condition = "closed book"
ASKED = "closed-book"
"""The name of these questions in plans and notes."""


def closed_book(material: Material, datasets: Iterable[Dataset]) -> dict[tuple[str, str], float]:
    """Return (dataset, query) -> 1 if an LLM answers right without passages, 0 if not; NaN if it was not decided.

    Answers in the records of `r2med answer` are used. Only the other questions are asked, with the same prompt, so that
    the journal has them for both.
    """
    recorded = _recorded(material)
    found: dict[tuple[str, str], float] = {}
    items: list[tuple[str, Query, str]] = []
    for dataset in datasets:
        known = recorded.get(dataset.fingerprint, {})
        queries = asked_queries(dataset, material.queries)
        found |= {(dataset.name, query.id): known[query.id] for query in queries if query.id in known}
        texts = _asked(material, dataset, [query for query in queries if query.id not in known])
        items += [(dataset.name, query, texts[query.id]) for query in queries if query.id in texts]
    verdicts, notes = judge_texts(items, material.questions)
    material.questions.remarks[ASKED] = notes
    return found | {(name, query.id): right for (name, query, _), right in zip(items, verdicts, strict=True)}


def _recorded(material: Material) -> dict[str, Mapping[str, float]]:
    """Return the fingerprint of a dataset -> query -> accuracy of open answers that the LLM gave without passages."""
    try:
        kept = collect_answers((), material.results)
    except UserError:
        return {}
    return {
        each.record.dataset.fingerprint: {
            query: nan if values.get(UNDECIDED) else values[MAIN_MEASURE]
            for query, values in each.record.per_query.get(CLOSED_BOOK, {}).items()
            if MAIN_MEASURE in values
        }
        for each in kept
        if each.record.reader == material.questions.card.spec and each.record.form == "open"
    }


def _asked(material: Material, dataset: Dataset, queries: Sequence[Query]) -> dict[str, str]:
    """Return query -> answer without passages. In a rehearsal, open questions get an answer of no meaning."""
    if not queries:
        return {}
    asked = material.questions
    reader = AnswerReader(asked.card, asked.chat, asked.tallies[ASKED])
    questions = reader.questions(dataset, queries, queries, {}, "open", (CLOSED_BOOK,), 1)
    if material.rehearsal:
        preview = reader.preview(questions)
        asked.add_preview(ASKED, preview)
        if preview.unanswered:
            return {query.id: f"an answer, number {number}" for number, query in enumerate(queries)}
    with tracing(reader.chat.trace), reader.reading(questions) as topic:
        given = reader.ask(questions, topic).given
    return {each.query: each.text for each in given if each.status == "answered"}
