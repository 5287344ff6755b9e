"""What `r2med audit`, `judge` and `nuggets` show."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.cli.generated import Shown
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from r2med.assessment.answers.nugget_making import MadeNuggets
    from r2med.assessment.audit.audit_findings import Audit
    from r2med.assessment.judgements.committee import JudgedPools


def show_audit(audited: Audit, form: str) -> Shown:
    """Show the findings. The command ends with 1 if something is broken."""
    from r2med.assessment.audit.audit_page import PAGE_ROWS, TERMINAL_ROWS, audit_page

    in_terminal = form == "text"
    page = audit_page(audited, TERMINAL_ROWS if in_terminal else PAGE_ROWS, with_sound=not in_terminal)
    return Shown(page, audited.model_dump(mode="json"), code=1 if audited.verdict == "broken" else 0)


def show_judged(judged: JudgedPools, out: str | Path) -> Shown:
    """Show what the judges said."""
    from r2med.assessment.judgements.judge_page import judge_json, judge_page

    return Shown(judge_page(judged, str(out)), judge_json(judged, str(out)))


def show_nuggets(made: MadeNuggets, out: str | Path, data: str | Path) -> None:
    """Show how many facts there are, and how people check them."""
    from r2med.models.llm.costs import listed_kinds

    vital = sum(nugget.vital for nugget in made.nuggets)
    questions = counted(len(made.nuggets.by_query), "question")
    print(printable(f"{counted(len(made.nuggets), 'nugget')} for {questions} in {out}, {vital:,} of them vital"))
    if made.failures:
        kinds = listed_kinds(made.kinds)
        print(printable(f"{counted(len(made.failures), 'question')} without nuggets ({kinds}): run it again to retry"))
    review = f"r2med review serve {shlex.quote(str(out))} --data {shlex.quote(str(data))}"
    print(printable(f"people check them with {review}"))
