"""What is wrong with a dataset: problems with their file and line, collected instead of stopping at the first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from r2med.core.errors import UserError

KEPT = 1000
"""Messages kept: a file of a million bad lines must not fill the memory."""

EXAMPLES = 3
"""Problems of one cause that are each shown; more are counted."""


@dataclass(frozen=True)
class Problem:
    """One finding; `cause` is what it has in common with others of its kind."""

    path: Path
    line: int | None
    message: str
    cause: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"

    @property
    def kind(self) -> tuple[Path, str]:
        """What problems are counted by."""
        return self.path, self.cause or self.message


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
    _counts: Counter[tuple[Path, str]] = field(default_factory=Counter)

    def add(self, path: Path, line: int | None, message: str, cause: str = "") -> None:
        """Report what stops a load."""
        self._keep(self.problems, Problem(path, line, message, cause))

    def flaw(self, path: Path, line: int | None, message: str, cause: str = "") -> None:
        """Report what a load survives."""
        self._keep(self.flaws, Problem(path, line, message, cause))

    def notice(self, message: str) -> None:
        """Tell what would be done silently otherwise."""
        self.notices.append(message)

    def take(self, other: Problems) -> None:
        """Take over all that another collection holds."""
        self.problems += other.problems
        self.flaws += other.flaws
        self.notices += other.notices
        self.dropped += other.dropped
        self._counts += other._counts

    def _keep(self, kept: list[Problem], problem: Problem) -> None:
        if problem.kind in self._counts or len(self._counts) < KEPT:
            self._counts[problem.kind] += 1
        if len(kept) < KEPT:
            kept.append(problem)
        else:
            self.dropped += 1

    def __len__(self) -> int:
        return len(self.problems) + len(self.flaws) + self.dropped

    def lines(self) -> Iterator[str]:
        """Yield what to show: each problem of a cause that is rare, one line with the count for one that is not."""
        shown: Counter[tuple[Path, str]] = Counter()
        for problem in (*self.problems, *self.flaws):
            count = self._counts[problem.kind]
            shown[problem.kind] += 1
            if count <= EXAMPLES:
                yield str(problem)
            elif shown[problem.kind] == 1:
                start = f", first in line {problem.line}" if problem.line else ""
                yield f"{problem.path}: {count:,} × {problem.cause or problem.message}{start}"
        uncounted = len(self) - self._counts.total()
        if uncounted > 0:
            yield f"and {uncounted:,} more problem{'s' if uncounted > 1 else ''}"

    def raise_first(self, name: str) -> None:
        """Raise UserError for the first problem, with the command that shows all."""
        if not self.problems:
            return
        more = len(self.problems) - 1 + self.dropped
        also = f" (and {more:,} more: r2med data check {shlex.quote(name)})" if more else ""
        raise UserError(f"{self.problems[0]}{also}")
