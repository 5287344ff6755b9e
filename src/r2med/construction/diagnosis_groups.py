"""Group diagnoses by meaning: by a table of synonyms and by spelling."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from r2med.construction.step import Streams
from r2med.foundation.pages.text_formats import csv_rows
from r2med.foundation.store import Store
from r2med.foundation.store.file_digests import file_digest
from r2med.foundation.store.files import write_atomically
from r2med.foundation.text.synonyms import Synonyms, normal_term

log = logging.getLogger("r2med")

GROUPS_FILE = "groups.csv"
"""Name of the list of groups in the folder of a build."""
GROUPS_FACT = "groups"
"""Name of the fact of a step that holds the rows of the list."""


class GroupRow(NamedTuple):
    """A row of the list: a diagnosis, the group that it belongs to, and why."""

    term: str
    group: str
    by: Literal["table", "string"]


class DiagnosisGroups:
    """The group of each diagnosis."""

    def __init__(self, synonyms: Synonyms | None = None) -> None:
        self._synonyms = synonyms

    @classmethod
    def read(cls, streams: Streams, table: str) -> DiagnosisGroups:
        """Read the table that a step names, if it names one."""
        return cls(_synonyms(streams, table))

    def is_in_table(self, term: str) -> bool:
        """Return True if the table of synonyms has the term."""
        return self._synonyms is not None and self._synonyms.concept(term) is not None

    def group(self, term: str) -> str:
        """Return the group of a diagnosis."""
        return (self._synonyms.concept(term) if self._synonyms else None) or normal_term(term)

    def table_terms(self, group: str) -> tuple[str, ...]:
        """Return the terms of the table that belong to a group."""
        return self._synonyms.terms(group) if self._synonyms else ()


def groups_key(streams: Streams, table: str, store: Store) -> dict[str, Any]:
    """Return what the groups depend on, for the key of a step: the table, if the step names one."""
    return {"synonyms": file_digest(streams.path(table), store)} if table else {}


def write_groups(out: Path, rows: Iterable[Sequence[str]]) -> None:
    """Write the list of a build, for people. Without any groups, an old list is removed."""
    if not (rows := list(rows)):
        (out / GROUPS_FILE).unlink(missing_ok=True)
        return
    # The mark at the start lets spreadsheets read the file as UTF-8.
    write_atomically(out / GROUPS_FILE, f"\ufeff{csv_rows([GroupRow._fields, *rows])}".encode())


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
