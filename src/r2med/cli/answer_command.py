"""What `r2med answer` shows: how well each reader answers, by what it read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import INCOMPLETE, Shown

if TYPE_CHECKING:
    from r2med.assessment.answers.answering import AnsweredSystems


def show_answers(answered: AnsweredSystems, out: str | Path) -> Shown:
    """Show a table of all conditions, and the errors. If requests failed, as without budget, the code is not 0."""
    from r2med.assessment.answers.answer_page import answer_json, answer_page

    failed = any(counts.get("failed") for record in answered for counts in record.answers.statuses.values())
    return Shown(answer_page(answered, str(out)), answer_json(answered), INCOMPLETE if answered.errors or failed else 0)
