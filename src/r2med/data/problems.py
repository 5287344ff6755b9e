"""Problems of a dataset with their file and line, collected instead of stopping at the first one."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.finding import Evidence, Finding
from r2med.foundation.text.plurals import counted

MAX_MESSAGES = 1000
"""Maximum number of messages kept, because a file with a million bad lines must not fill the memory."""

EXAMPLES = 3
"""Number of problems of one cause that are shown. Further ones are counted."""

FILES = "files"
DATA_CHECKS: Mapping[str, tuple[str, str]] = {
    FILES: ("Files", "Every file can be read."),
    "scorable-queries": ("Queries that can be scored", "Every query has a text and a relevant document."),
    "missing-documents": ("Relevant documents exist", "The corpus has every judged document."),
    "empty-documents": ("Documents have text", "Every document has text."),
    "repeated-queries": ("Queries that occur twice", "No query occurs twice."),
    "encoding": ("Encoding of texts", "No text has control characters."),
    "aspects-and-nuggets": (
        "Aspects and nuggets",
        "No aspect or nugget is about an unknown query or a document that is not relevant.",
    ),
    "card-counts": ("Counts of the card", "No count differs from the card."),
}
"""What `r2med data check` looks at: id -> title, and what is said if nothing was found. `r2med audit` has these ids."""


@dataclass(frozen=True)
class Problem:
    """One problem. `cause` is the text that all problems of its kind share, and `check` is a name in `DATA_CHECKS`."""

    path: Path
    line: int | None
    message: str
    cause: str = ""
    check: str = FILES

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"

    @property
    def kind(self) -> tuple[Path, str]:
        """The key by which problems are counted."""
        return self.path, self.cause or self.message


@dataclass
class Problems:
    """Collect the problems that a reader finds.

    A *problem* makes the data unreadable. A *flaw* does not stop an evaluation (an unknown document in the qrels
    counts as not found). A *notice* is harmless. `r2med data check` fails on the first two, `load` on the first.
    """

    problems: list[Problem] = field(default_factory=list)
    flaws: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    dropped: int = 0
    notice_checks: dict[str, str] = field(default_factory=dict)
    """Notice -> the check that gave it, unless it is about files."""
    _counts: Counter[tuple[Path, str]] = field(default_factory=Counter)

    def add(self, path: Path, line: int | None, message: str, cause: str = "") -> None:
        """Report a problem that makes loading fail."""
        self._keep(self.problems, Problem(path, line, message, cause))

    def flaw(self, path: Path, line: int | None, message: str, cause: str = "", *, check: str = FILES) -> None:
        """Report a flaw, which does not stop loading."""
        self._keep(self.flaws, Problem(path, line, message, cause, check))

    def notice(self, message: str, *, check: str = FILES) -> None:
        """Report something that would otherwise happen silently."""
        self.notices.append(message)
        self.notice_checks[message] = check

    def take(self, other: Problems) -> None:
        """Add all problems of another collection."""
        self.problems += other.problems
        self.flaws += other.flaws
        self.notices += other.notices
        self.notice_checks |= other.notice_checks
        self.dropped += other.dropped
        self._counts += other._counts

    def _keep(self, kept: list[Problem], problem: Problem) -> None:
        if problem.kind in self._counts or len(self._counts) < MAX_MESSAGES:
            self._counts[problem.kind] += 1
        if len(kept) < MAX_MESSAGES:
            kept.append(problem)
        else:
            self.dropped += 1

    def __len__(self) -> int:
        return len(self.problems) + len(self.flaws) + self.dropped

    def lines(self, check: str = "") -> Iterator[str]:
        """Yield the lines to show: each problem of a rare cause, and one line with the count for a frequent cause.

        With `check`, only the problems of this check are shown.
        """
        shown: Counter[tuple[Path, str]] = Counter()
        for problem in (*self.problems, *self.flaws):
            if check not in ("", problem.check):
                continue
            count = self._counts[problem.kind]
            shown[problem.kind] += 1
            if count <= EXAMPLES:
                yield str(problem)
            elif shown[problem.kind] == 1:
                start = f", first in line {problem.line}" if problem.line else ""
                yield f"{problem.path}: {count:,} × {problem.cause or problem.message}{start}"
        uncounted = len(self) - self._counts.total()
        if uncounted > 0 and not check:
            yield f"and {counted(uncounted, 'more problem')}"

    def findings(self) -> tuple[Finding, ...]:
        """Return one finding for each check. A problem breaks the data, a flaw needs a look, a notice is harmless."""
        return tuple(map(self.finding, DATA_CHECKS))

    def finding(self, check: str) -> Finding:
        """Return what one check found."""
        title, sound = DATA_CHECKS[check]
        found = [problem for problem in (*self.problems, *self.flaws) if problem.check == check]
        notices = [notice for notice in self.notices if self.notice_checks.get(notice, FILES) == check]
        lines = [*self.lines(check), *notices]
        more = f"; {len(lines) - EXAMPLES:,} more" if len(lines) > EXAMPLES else ""
        rows = [(str(problem.path), problem.line, problem.message) for problem in found]
        return Finding(
            id=check,
            title=title,
            verdict="sound" if not found else "broken" if found[0] in self.problems else "look",
            sentence=f"{'; '.join(lines[:EXAMPLES])}{more}." if lines else sound,
            numbers={"problems": len(found), "notices": len(notices)},
            evidence=Evidence.found(("file", "line", "problem"), rows),
        )

    def raise_first(self, dataset: str = "") -> None:
        """Raise UserError for the first problem. If it is one of a dataset, the command that shows all is named."""
        if not self.problems:
            return
        more = len(self.problems) - 1 + self.dropped
        command = f": r2med data check {shlex.quote(dataset)}" if dataset else ""
        also = f" (and {more:,} more{command})" if more else ""
        raise UserError(f"{self.problems[0]}{also}")


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One row of a corpus, with its file and line for messages."""

    id: str
    text: str
    path: Path
    line: int


def where(path: Path, line: int, seen_from: Path) -> str:
    """Return the file and line of a row, for a message about a row of the file `seen_from`."""
    return f"line {line}" if path == seen_from else f"{path.name}:{line}"
