"""The closed sets of words of answers: conditions, forms, statuses, grades. Help texts read them, so few imports."""

from __future__ import annotations

from typing import Literal, assert_never, get_args

Condition = Literal["closed book", "retrieved", "relevant", "random", "searched"]
"""What a reader reads: nothing, the best passages of the system, the labelled passages, random passages, or what an
agent searches and opens itself before it answers."""
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
SEARCHED: Condition = "searched"
READ_CONDITIONS: tuple[Condition, ...] = tuple(each for each in CONDITIONS if each != SEARCHED)
"""The conditions in which a reader is given its passages. They are asked unless a user chooses others."""

NamedBy = Literal["guess", "find"]
"""How a query of an agent came to name the reference answer: before any document showed that name, or after."""

AnswerForm = Literal["open", "choice"]
"""An answer in the reader's own words, or one of several options."""

AnswerStatus = Literal["answered", "no option", "refused", "cut off", "unreadable", "failed"]
"""What came back. Only an answer with the status "answered" can be right.

No option: a choice that states none of the options, or several. Refused: the server of the LLM says that the model or
a filter refused. Cut off: the reader wrote until its token limit. Unreadable: not of the form that was asked for.
Failed: the request failed.
"""

AnswerGrade = Literal["nothing", "wrong", "partly", "right"]
"""The judge's grade of an open answer. An answer that settles on nothing abstains."""
ABSTAINED: AnswerGrade = "nothing"
RIGHT: AnswerGrade = "right"

AnswerRemark = Literal["another language", "copy of the question", "copy of passages"]
"""What is striking about an open answer. Remarks are shown and decide nothing."""

NuggetVerdict = Literal["support", "partial", "none"]
"""What an answer says about a nugget: all of it, a part of it, or nothing."""


def can_be_right(status: AnswerStatus) -> bool | None:
    """Return True for a status of answers that can be right, False if they are wrong, None if there is no answer."""
    match status:
        case "answered":
            return True
        case "no option" | "refused" | "cut off" | "unreadable":
            return False
        case "failed":
            return None
        case other:
            assert_never(other)
