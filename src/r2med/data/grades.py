"""Check grades of relevance: finite whole numbers. A document with a grade below 1 is not relevant."""

from __future__ import annotations

import re
import reprlib
from numbers import Real
from typing import Any

HIGHEST_GRADE = 1 << 31
"""The largest grade that is read. No relevance scale needs more, and sums of gains stay exact below it."""


class GradeError(ValueError):
    """A value that is not a grade."""

    def __init__(self, value: object, fault: str) -> None:
        super().__init__(f"grade {reprlib.repr(value)} {fault}")
        self.fault = fault
        """What is wrong with the value."""


def whole_grade(number: Any) -> int:
    """Return the grade of a number: an int, an integer of NumPy, or a float without a fraction.

    Raises GradeError if it is not a whole number or out of range.
    """
    is_number = isinstance(number, int | Real)
    if not is_number:
        raise GradeError(number, "is not a whole number")
    if number < -HIGHEST_GRADE or number > HIGHEST_GRADE:
        raise GradeError(number, "is out of range: grades are small numbers")
    if number % 1 != 0:  # also of NaN
        raise GradeError(number, "is not a whole number")
    return int(number)


def written_grade(text: str) -> int:
    """Return the grade that a text has in digits. Raises GradeError if it is not a whole number or out of range."""
    if not re.fullmatch(r"\s*-?[0-9]+\s*", text):
        raise GradeError(text, "is not a whole number")
    return whole_grade(float(text))  # int() refuses thousands of digits
