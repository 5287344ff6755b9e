"""The budget in dollars of one command. It is reserved before a request is sent, and settled when the cost is known."""

from __future__ import annotations

import math
import threading

from r2med.foundation.core.errors import UserError


class Budget:
    """The budget of one command for embeddings and LLMs together. Any thread may use it. None means no limit."""

    def __init__(self, limit: float | None = None) -> None:
        if limit is not None and (not math.isfinite(limit) or limit < 0):
            raise UserError(f"a budget must be a number of dollars, 0 or more, not {limit}")
        self.limit = limit
        self.spent = 0.0
        self._reserved = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Budget({self.limit})"

    def reserve(self, cost: float) -> bool:
        """Reserve an estimated cost. Return False if it would exceed the budget."""
        with self._lock:
            # A budget of 0 means that nothing is sent, even if a request is free.
            if self.limit is not None and (not self.limit or self.spent + self._reserved + cost > self.limit):
                return False
            self._reserved += cost
            return True

    def settle(self, reserved: float, cost: float) -> None:
        """Replace a reservation by the real cost of the request, which is 0 if it was not billed."""
        with self._lock:
            self._reserved -= reserved
            self.spent += cost

    def refusal(self, cost: float) -> str:
        """Return the reason why a request of this cost is not sent."""
        return (
            f"the budget of ${self.limit:.6g} allows no further request: ${self.spent:.6f} spent, "
            f"and this one may cost up to ${cost:.6f}; answers are saved; run again with a larger budget to continue"
        )

    def exceeded(self, remaining: int) -> UserError:
        """Return the error that says why work stopped."""
        return UserError(
            f"the budget of ${self.limit:.6g} allows no further request: ${self.spent:.6f} spent, {remaining:,} texts "
            "remain; paid answers are saved; run again with a larger budget to continue"
        )
