"""Group diagnoses by meaning: by a table of synonyms, by spelling, and by proposals that a person confirmed.

The groups are in `groups.csv` in the folder of a build. A proposal of an LLM counts only if a person wrote `yes` into
its column `confirmed`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from r2med.construction.step import Streams
from r2med.data.table_files import open_tables
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.csv_text import csv_rows
from r2med.foundation.store.files import sha256, write_atomically
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.synonyms import Synonyms, normal_term

log = logging.getLogger("r2med")

GROUPS_FILE = "groups.csv"
"""Name of the list of groups in the folder of a build."""
GROUPS_FACT = "groups"
"""Name of the fact of a step that holds the rows of the list."""

GroupingWay = Literal["table", "string", "proposal"]
_YES, _NO = ("yes", "y", "true", "1", "x"), ("no", "n", "false", "0")


class GroupRow(NamedTuple):
    """A row of the list: a diagnosis, the group that it belongs to, and why."""

    term: str
    group: str
    by: GroupingWay
    confirmed: str = ""
    """What a person says to a proposal: yes, no, or nothing yet. A row of another way is always yes."""

    @property
    def pair(self) -> frozenset[str]:
        """Identifies a proposal, however its terms are written and ordered."""
        return frozenset((normal_term(self.term), normal_term(self.group)))


class DiagnosisGroups:
    """The group of each diagnosis. Proposals join groups only if they are among `confirmed`."""

    def __init__(self, synonyms: Synonyms | None = None, confirmed: Sequence[tuple[str, str]] = ()) -> None:
        self._synonyms = synonyms
        pairs = [(self.base(one), self.base(other)) for one, other in confirmed]
        self._joined = Synonyms(row for one, other in pairs for row in ((one, other), (other, other)))
        self._bases: dict[str, dict[str, None]] = {}
        for pair in pairs:
            for base in pair:
                self._bases.setdefault(self._join(base), {})[base] = None

    @classmethod
    def read(cls, streams: Streams, table: str) -> DiagnosisGroups:
        """Read the table that a step names, if it names one, and the confirmed proposals of the build."""
        return cls(_synonyms(streams, table), confirmed_pairs(streams.out))

    def is_in_table(self, term: str) -> bool:
        """Return True if the table of synonyms has the term."""
        return self._synonyms is not None and self._synonyms.concept(term) is not None

    def base(self, term: str) -> str:
        """Return the group of a diagnosis by the table and by spelling alone."""
        return (self._synonyms.concept(term) if self._synonyms else None) or normal_term(term)

    def group(self, term: str) -> str:
        """Return the group of a diagnosis."""
        return self._join(self.base(term))

    def base_terms(self, base: str) -> tuple[str, ...]:
        """Return the terms of the table for a group by the table and by spelling alone."""
        return self._synonyms.terms(base) if self._synonyms else ()

    def table_terms(self, group: str) -> Iterator[str]:
        """Yield the terms of the table that belong to a group."""
        for base in self._bases.get(group, {group: None}):
            yield from self.base_terms(base)

    def _join(self, base: str) -> str:
        return self._joined.concept(base) or base


def groups_key(streams: Streams, table: str) -> dict[str, Any]:
    """Return what the groups depend on, for the key of a step: the table and the confirmed proposals, if any."""
    key: dict[str, Any] = {"synonyms": sha256(streams.path(table))} if table else {}
    confirmed = sorted(confirmed_pairs(streams.out))
    return {**key, "confirmed": confirmed} if confirmed else key


def confirmed_pairs(out: Path | None) -> list[tuple[str, str]]:
    """Return the proposals in a build's list that a person confirmed."""
    rows = read_groups(out / GROUPS_FILE) if out is not None else []
    return [(row.term, row.group) for row in rows if row.by == "proposal" and row.confirmed == "yes"]


def read_groups(path: Path) -> list[GroupRow]:
    """Read the list of groups; nothing if there is no list or it has no rows. Raises UserError with a wrong row."""
    if not path.is_file() or sum(bool(line.strip()) for line in path.read_bytes().splitlines()) < 2:
        return []
    rows = []
    for table in open_tables(path):
        for line, cells in table:
            rows.append(_row(cells, f"{path}, {line}"))
    return rows


def write_groups(out: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write the list of a build. What people said to proposals is kept, also if nothing proposes them any more.

    Without any groups, an old list is removed.
    """
    known = read_groups(out / GROUPS_FILE)
    if refused := [row for row in known if row.by != "proposal" and row.confirmed == "no"]:
        log.warning(
            "%s: %s with confirmed=no that no LLM proposed, such as %r: only proposals can be rejected. "
            "To separate a diagnosis of the table, change the table.",
            out / GROUPS_FILE,
            counted(len(refused), "row"),
            refused[0].term,
        )
    before = {row.pair: row for row in known if row.by == "proposal" and row.confirmed}
    merged = []
    for term, group, by, *_ in rows:
        row = GroupRow(term, group, _way(by), "" if by == "proposal" else "yes")
        merged.append(before.pop(row.pair, row) if by == "proposal" else row)
    merged += before.values()
    if not merged:
        (out / GROUPS_FILE).unlink(missing_ok=True)
        return
    # The mark at the start lets spreadsheets read the file as UTF-8.
    write_atomically(out / GROUPS_FILE, f"\ufeff{csv_rows([GroupRow._fields, *merged])}".encode())


def groups_hint(out: Path) -> str:
    """Return a line that says how to confirm proposals; empty if none waits for an answer."""
    waiting = sum(not row.confirmed for row in read_groups(out / GROUPS_FILE))
    if not waiting:
        return ""
    return (
        f"{out / GROUPS_FILE}: {counted(waiting, 'proposed synonym')} without an answer. "
        "Write yes or no into the column confirmed, and build again."
    )


def _row(cells: Mapping[str, object], where: str) -> GroupRow:
    term, group, by, confirmed = (str(cells.get(name) or "").strip() for name in GroupRow._fields)
    answer = "yes" if confirmed.lower() in _YES else "no" if confirmed.lower() in _NO else confirmed
    if not (term and group and by in get_args(GroupingWay) and answer in ("", "yes", "no")):
        raise UserError(
            f"{where}: not a row of groups ({term!r}, {group!r}, {by!r}, {confirmed!r}): it needs a term, a group, by "
            "(table, string or proposal), and confirmed (yes, no or empty)"
        )
    return GroupRow(term, group, _way(by), answer)


def _way(by: str) -> GroupingWay:
    return "table" if by == "table" else "string" if by == "string" else "proposal"


def _synonyms(streams: Streams, table: str) -> Synonyms | None:
    if not table:
        return None
    path = streams.path(table)
    state = path.stat()
    return _read_once(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _read_once(path: Path, *state: int) -> Synonyms:
    """Read a table and log where terms are ambiguous. Several steps of a build read the same table."""
    synonyms = Synonyms.read(path)
    for note in synonyms.notes:
        log.warning("%s", note)
    return synonyms
