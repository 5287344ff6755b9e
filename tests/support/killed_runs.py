"""Runs that are killed one after another, and which of their requests a server answers."""

from support import chat_server as api
from support.keys import KEY


class KilledRuns:
    """Each run has a key of its own, and the server answers the last run only.

    On a busy machine the server may read a request when its run is dead already. An answer to it would be lost.
    """

    def __init__(self) -> None:
        self.allowed = 0
        """The number of answers of all runs after which the server hangs."""
        self._runs = 0

    @property
    def key(self) -> str:
        """The key of the last run."""
        return f"{KEY}-{self._runs}"

    def begin(self, allowed: int = 1_000_000) -> str:
        """Return the key of the next run, in which the server hangs after so many answers of all runs."""
        self._runs += 1
        self.allowed = allowed
        return self.key

    def hangs(self, exchange: api.Exchange, answered: int) -> bool:
        """Return True if the server is to say nothing to a request, after so many answers of all runs."""
        return answered >= self.allowed or not exchange.request.key.endswith(self.key)
