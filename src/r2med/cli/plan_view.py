"""What `--plan` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.cli.generated import Shown

if TYPE_CHECKING:
    from r2med.evaluation.running.plan_page import Plan


def show_plan(plan: Plan) -> Shown:
    """Show what a command would do, and what it would cost at most."""
    from r2med.evaluation.running.plan_page import plan_page

    return Shown(plan_page(plan))
