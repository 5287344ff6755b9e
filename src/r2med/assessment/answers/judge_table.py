"""Show how far a judge of answers can be trusted: its planted controls, and its agreement with the rule."""

from __future__ import annotations

from collections.abc import Sequence

from r2med.assessment.panels.planted_controls import share_of
from r2med.data.dataset_cards import short_name
from r2med.evaluation.records.answer_facts import JudgeFacts
from r2med.evaluation.records.record import Record
from r2med.foundation.pages.cells import Value
from r2med.foundation.pages.page import Table

JUDGE_NOTE = (
    "judge's test: empty if the judge passed its controls. "
    "controls: planted items whose right verdict is known, and how many the judge got right, with the worst kind. They "
    "are drawn over all answers of a command; some are asked first, and others among the answers. "
    "rule: of the answers that are the reference word for word (by rule), the share that the judge calls right. The "
    "judge decides, and the rule is only its control. no answer: questions to the judge without a usable answer; "
    "these answers have no accuracy."
)


def judge_table(records: Sequence[Record]) -> Table | None:
    """Return a table of the judges of records; None if there was none."""
    rows = [_row(record, record.answers.judge) for record in records if record.answers.judge]
    heads = (
        "dataset",
        "judge",
        "system",
        "reader",
        "judge's test",
        "controls right",
        "controls",
        "worst kind",
        "rule",
        "by rule",
        "no answer",
    )
    return Table.of(heads, rows, "The judge", JUDGE_NOTE, name="answers-judge") if rows else None


def _row(record: Record, facts: JudgeFacts) -> list[Value]:
    counts = facts.controls.items()
    right, asked = (sum(pair[place] for _, pair in counts) for place in (0, 1))
    kind, (least, most) = min(counts, key=lambda each: each[1][0] / each[1][1], default=("", (0, 0)))
    worst = f"{kind} ({least} of {most})" if least < most else ""
    where = short_name(record.dataset.name), facts.judge, record.system, record.answers.reader
    agreed = share_of(facts.agreed, facts.both)
    return [*where, facts.trust, right, asked, worst, agreed, facts.both, sum(facts.failures.values())]
