"""The dollars that requests may cost: reserved before one is sent, settled when its bill is known."""

from __future__ import annotations

import math
import threading
from typing import Protocol

from r2med.errors import UserError


class Budget:
    """What may be spent, what is, and what requests under way may still cost."""

    def __init__(self, limit: float | None) -> None:
        if limit is not None and (math.isnan(limit) or limit < 0):
            raise UserError(f"a budget is a number of dollars from 0 up, not {limit}")
        self.limit = limit
        self.spent = 0.0
        self._reserved = 0.0
        self._lock = threading.Lock()

    def reserve(self, cost: float) -> bool:
        """Set an estimated cost aside; False when it would exceed the budget."""
        with self._lock:
            # A budget of 0 means that nothing is to be sent, even where a request is free.
            if self.limit is not None and (not self.limit or self.spent + self._reserved + cost > self.limit):
                return False
            self._reserved += cost
            return True

    def settle(self, reserved: float, cost: float) -> None:
        """Replace a reservation by what the request did cost; 0 for one that failed."""
        with self._lock:
            self._reserved -= reserved
            self.spent += cost

    def exceeded(self, remaining: int) -> UserError:
        """Return the line that tells why work stopped."""
        return UserError(
            f"the budget of ${self.limit:.6g} allows no further request: ${self.spent:.6f} spent, {remaining:,} texts "
            "remain; what was paid for is kept: run again with a larger budget to continue"
        )


class HasBudget(Protocol):
    """Options that say what may be spent."""

    @property
    def budget_usd(self) -> float | None:
        """Dollars; None is no limit."""


_BUDGETS: dict[int, tuple[HasBudget, Budget]] = {}
"""By identity of the options, which are kept alive so that an identity is never given out twice."""


def budget_of(options: HasBudget) -> Budget:
    """Return the budget that all models opened with these options share.

    A run opens one model per card and dataset, all with one value of options: its budget is the whole run's.
    """
    return _BUDGETS.setdefault(id(options), (options, Budget(options.budget_usd)))[1]
