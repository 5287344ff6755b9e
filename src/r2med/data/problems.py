"""What is wrong with a dataset: problems with their file and line, collected instead of stopping at the first."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from r2med.errors import UserError

KEPT = 1000
"""Messages kept: a file of a million bad lines must not fill the memory."""


@dataclass(frozen=True)
class Problem:
    """One finding."""

    path: Path
    line: int | None
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


@dataclass
class Problems:
    """Collects what a reader finds.

    A *problem* makes the data unreadable, a *flaw* can be evaluated around (an unknown document in the qrels
    counts as never found), a *notice* is harmless. `r2med data check` fails on the first two, `load` on the first.
    """

    problems: list[Problem] = field(default_factory=list)
    flaws: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    dropped: int = 0

    def add(self, path: Path, line: int | None, message: str) -> None:
        """Report what stops a load."""
        self._keep(self.problems, Problem(path, line, message))

    def flaw(self, path: Path, line: int | None, message: str) -> None:
        """Report what a load survives."""
        self._keep(self.flaws, Problem(path, line, message))

    def notice(self, message: str) -> None:
        """Tell what was done silently otherwise."""
        self.notices.append(message)

    def _keep(self, kept: list[Problem], problem: Problem) -> None:
        if len(kept) < KEPT:
            kept.append(problem)
        else:
            self.dropped += 1

    def __len__(self) -> int:
        return len(self.problems) + len(self.flaws) + self.dropped

    def raise_first(self, name: str) -> None:
        """Stop a load with the first problem and the command that shows all."""
        if not self.problems:
            return
        more = len(self.problems) - 1 + self.dropped
        also = f" (and {more} more: r2med data check {name})" if more else ""
        raise UserError(f"{self.problems[0]}{also}")
