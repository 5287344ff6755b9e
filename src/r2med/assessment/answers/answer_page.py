"""The page of `r2med answer`: how well each reader answers, by what it read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from r2med.assessment.answers.answer_scores import ANSWER_MEASURES, SEARCH_MEASURES
from r2med.assessment.answers.answering import AnsweredSystems
from r2med.assessment.answers.judge_table import judge_table
from r2med.assessment.answers.search_tables import calibration_of, search_tables
from r2med.data.dataset_cards import short_name
from r2med.evaluation.comparison.standings import with_intervals
from r2med.evaluation.records.answer_words import CONDITIONS, SEARCHED, Condition
from r2med.evaluation.records.record import Record
from r2med.foundation.pages.cells import Estimate, Value
from r2med.foundation.pages.page import Page, Paragraph, Section, Table

STATUS_NOTE = (
    "not answered: no option, refused by the server, cut off at the token limit, or unreadable; these count as wrong. "
    "abstained: open answers that settle on nothing, says the judge; these count as wrong, too. "
    "failed: the request failed; it has no score, and the same command asks it again. "
    "tokens and $/1,000: what the reader reads and writes for a question, and its dollars for 1,000 questions."
)


def answer_page(answered: AnsweredSystems, folder: str) -> Page:
    """Return the page with a table of all conditions, and the errors."""
    measures = measures_of(answered.records)
    repeated = any(record.repeat for record in answered.records)
    graded = ("abstained",) if any(record.answers.grades for record in answered.records) else ()
    rows = [
        _row(record, condition, measures, repeated, bool(graded))
        for record in answered.records
        for condition in CONDITIONS
        if condition in record.answers.statuses
    ]
    where = ("dataset", "system", "reader", "read", *(["repeat"] if repeated else []))
    heads = (*where, "questions", *measures, "not answered", *graded, "failed", "tokens", "$/1,000")
    parts: list[Any] = [Paragraph(line, no_wrap=True) for line in _notices(answered)]
    parts += [Paragraph(line, "error", no_wrap=True) for line in answered.errors]
    explained = [f"{measure}: {ANSWER_MEASURES[measure]}" for measure in measures]
    note = " ".join([*explained, STATUS_NOTE])
    tables = [_with_dollars(Table.of(heads, rows, "Answers", note, name="answers"))] if rows else []
    tables += search_tables(answered.records)
    if judges := judge_table(answered.records):
        tables.append(judges)
    lead = f"The records are in {folder}." if rows else ""
    return Page("Answers", [Section("Answers", [*tables, *parts], lead)], kind="answers")


def _with_dollars(table: Table) -> Table:
    """Return a table whose last column has dollars."""
    *columns, last = table.columns
    return replace(table, columns=[*columns, replace(last, kind="dollars")])


def measures_of(records: tuple[Record, ...]) -> list[str]:
    """Return the measures that any of the records has. Those of agents that search have tables of their own."""
    measured = {measure for record in records for means in record.answers.mean.values() for measure in means}
    return [measure for measure in ANSWER_MEASURES if measure in measured.difference(SEARCH_MEASURES)]


def _row(record: Record, condition: Condition, measures: list[str], repeated: bool, graded: bool) -> list[Value]:
    statuses = record.answers.statuses[condition]
    asked = sum(statuses.values())
    failed = statuses.get("failed", 0)
    means = [mean_of(record, condition, measure) for measure in measures]
    run = [str(record.repeat)] if repeated else []
    where = short_name(record.dataset.name), record.system, record.answers.reader, condition, *run
    cost = record.answers.costs.get(condition)
    tokens = round(cost.llm_tokens / max(1, asked)) if cost else None
    dollars = 1000 * cost.dollars / max(1, asked) if cost and not cost.unpriced else None
    not_answered = asked - failed - statuses.get("answered", 0)
    abstained = [record.answers.abstained(condition)] if graded else []
    return [*where, asked, *means, not_answered, *abstained, failed, tokens, dollars]


def mean_of(record: Record, condition: Condition, measure: str) -> Estimate | None:
    """Return the mean of a measure with its interval; None if no answer has a value."""
    values = [scores[measure] for scores in record.answers.per_query[condition].values() if measure in scores]
    return with_intervals({"": np.array([values])}, 1.0)[0] if values else None


def _notices(answered: AnsweredSystems) -> list[str]:
    lines = [
        f"{record.display_name} on {record.dataset.name}: {notice}"
        for record in answered.records
        for notice in record.answers.notices
    ]
    if any(record.repeat for record in answered.records):
        lines.append("Each repeat has its row. r2med compare --answers shows the means over them, and what is chance.")
    if answered.reused:
        lines.append(f"{answered.reused} of {len(answered.records)} records existed already.")
    return lines


def _confidence(record: Record) -> dict[str, Any]:
    """Return what the confidence of an agent is worth, as JSON values."""
    facts = {
        name: {"value": each.value, "low": each.low, "high": each.high} if isinstance(each, Estimate) else each
        for name, each in calibration_of(record).items()
    }
    return {**facts, "abstained": record.answers.abstained(SEARCHED)}


def answer_json(answered: AnsweredSystems) -> list[dict[str, Any]]:
    """Return the means, statuses, grades and costs as JSON values."""
    return [
        {
            "system": record.system,
            "reader": record.answers.reader,
            "dataset": record.dataset.name,
            "key": record.key,
            **({"repeat": record.repeat} if record.repeat else {}),
            "form": record.answers.form,
            "mean": record.answers.mean,
            "statuses": record.answers.statuses,
            "grades": record.answers.grades,
            "judge": record.answers.judge.model_dump(mode="json") if record.answers.judge else None,
            **({"searching": record.answers.searching} if record.answers.searching else {}),
            **({"confidence": _confidence(record)} if SEARCHED in record.answers.statuses else {}),
            "reader_costs": {condition: cost.as_dict() for condition, cost in record.answers.costs.items()},
            "calls": record.cost.calls,
            "tokens": record.cost.llm_tokens,
            "dollars": None if record.cost.unpriced else record.cost.dollars,
            "notices": list(record.answers.notices),
        }
        for record in answered.records
    ] + [{"error": error} for error in answered.errors]
