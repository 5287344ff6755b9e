"""What `r2med answer` shows: how well each reader answers, by what it read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import INCOMPLETE, Shown

if TYPE_CHECKING:
    from r2med.assessment.answers.answering import AnsweredSystems


def show_answers(answered: AnsweredSystems, out: str | Path) -> Shown:
    """Show a table of all conditions, and the errors."""
    from r2med.assessment.answers.answer_page import answer_json, answer_page

    return Shown(answer_page(answered, str(out)), answer_json(answered), INCOMPLETE if answered.errors else 0)
