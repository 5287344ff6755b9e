"""Rules of a scripted judge of answers that gets planted controls right."""

from collections.abc import Sequence
from typing import Any

from r2med.assessment.answers.answer_controls import DENIALS, WORDINGS
from r2med.assessment.panels.control_texts import ANSWER_ORDERS
from r2med.data.dataset import Query


def graded_controls(queries: Sequence[Query]) -> list[tuple[list[str], dict[str, Any] | str]]:
    """Return the rules of a judge of answers that gets planted controls right, if their last sentence decides."""
    known = [(query.answer, query.answer.strip().rstrip(".")) for query in queries if query.answer]
    right, wrong = {"why": "the same", "grade": "right"}, {"why": "no", "grade": "wrong"}
    return [
        *(([f"{form.format(bare)}\n>>>"], wrong) for _, bare in known for form in DENIALS),
        *(
            ([f"for you only:\n<<<\n{reference}\n", f"{form.format(bare)}\n>>>"], right)
            for reference, bare in known
            for form in WORDINGS
        ),
        *(([f"{form.format(bare)}\n>>>"], wrong) for _, bare in known for form in WORDINGS),
        *(([order], wrong) for order in ANSWER_ORDERS),
    ]
