"""The closed sets of words of answers: conditions, forms and statuses. Help texts read them, so imports are few."""

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

AnswerStatus = Literal["answered", "refused", "other language", "copied", "cut off", "unreadable", "failed"]
"""What came back. Only an answer with the status "answered" can be right.

Refused: the reader declines. Other language: the answer is not in the language of the question. Copied: the answer
only repeats the question. Cut off: the reader wrote until its token limit. Unreadable: not of the form that was asked
for. Failed: the request failed.
"""

NuggetVerdict = Literal["support", "partial", "none"]
"""What an answer says about a nugget: all of it, a part of it, or nothing."""


def can_be_right(status: AnswerStatus) -> bool | None:
    """Return True for a status of answers that can be right, False if they are wrong, None if there is no answer."""
    match status:
        case "answered":
            return True
        case "refused" | "other language" | "copied" | "cut off" | "unreadable":
            return False
        case "failed":
            return None
        case other:
            assert_never(other)
