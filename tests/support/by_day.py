"""Cases of a grid of which `make test` runs some, and `make test-all` every one."""

from collections.abc import Iterable
from typing import Any

import pytest


def some_by_day(cases: Iterable[Any], every: int) -> list[Any]:
    """Return the cases as parameters, a tuple as several, and mark all but each `every`-th as slow."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*row, marks=[pytest.mark.slow] if number % every else []) for number, row in enumerate(rows)]
