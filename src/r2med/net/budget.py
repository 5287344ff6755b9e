"""The dollars that one command may spend: reserved before a request is sent, settled when its bill is known."""

from __future__ import annotations

import math
import threading

from r2med.core.errors import UserError


class Budget:
    """What one command may spend on embeddings and LLMs together. Any thread may ask; None is no limit."""

    def __init__(self, limit: float | None = None) -> None:
        if limit is not None and (not math.isfinite(limit) or limit < 0):
            raise UserError(f"a budget is a number of dollars from 0 up, not {limit}")
        self.limit = limit
        self.spent = 0.0
        self.ran_out = False
        """Whether work was left undone for want of money: the command then ends with an error."""
        self._reserved = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Budget({self.limit})"

    def reserve(self, cost: float) -> bool:
        """Set an estimated cost aside; return False if it would exceed the budget."""
        with self._lock:
            # A budget of 0 means that nothing is to be sent, even where a request is free.
            if self.limit is not None and (not self.limit or self.spent + self._reserved + cost > self.limit):
                return False
            self._reserved += cost
            return True

    def settle(self, reserved: float, cost: float) -> None:
        """Replace a reservation by what the request did cost; 0 if it was never billed."""
        with self._lock:
            self._reserved -= reserved
            self.spent += cost

    def refusal(self, cost: float) -> str:
        """Return why a request of this cost is not sent, and note that work was left undone."""
        self.ran_out = True
        return (
            f"the budget of ${self.limit:.6g} allows no further request: ${self.spent:.6f} spent, "
            f"and this one may cost up to ${cost:.6f}; answers are kept: run again with a larger budget to continue"
        )

    def exceeded(self, remaining: int) -> UserError:
        """Return the error that says why work stopped."""
        self.ran_out = True
        return UserError(
            f"the budget of ${self.limit:.6g} allows no further request: ${self.spent:.6f} spent, {remaining:,} texts "
            "remain; what was paid for is kept: run again with a larger budget to continue"
        )
