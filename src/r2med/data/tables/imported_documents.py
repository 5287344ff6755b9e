"""Read the documents of an import: each row with a text, identified by its own id or by a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from r2med.data.tables.columns import Part, id_named
from r2med.data.tables.id_matching import ROUNDED_NUMBER, Ids
from r2med.data.tables.table import Cell, SourceTable, flat
from r2med.foundation.core.errors import UserError

EXAMPLES = 3
"""Number of rows that a message names. Further rows are counted."""


def rows_named(rows: Sequence[str]) -> str:
    """Return the first rows of a list for a message, and the number of the others."""
    more = f" and {len(rows) - EXAMPLES:,} more" if len(rows) > EXAMPLES else ""
    return f"{', '.join(rows[:EXAMPLES])}{more}"


def cell_text(cell: Cell) -> str:
    """Return a cell as a text, with one line for each part of a list."""
    return cell.strip() if isinstance(cell, str) else "\n".join(cell).strip()


@dataclass(frozen=True)
class ImportedDocuments:
    """The ids of all documents, in order, and the rows that are not documents."""

    parts: tuple[Part, ...]
    ids: Ids
    left_out: frozenset[tuple[int, int]]
    numbered: bool
    notices: tuple[str, ...]

    def documents(self) -> Iterator[dict[str, str]]:
        """Read the tables again and yield each document."""
        number = 0
        for which, part in enumerate(self.parts):
            for line, row in part.rows():
                if (which, line) in self.left_out:
                    continue
                number += 1
                title = cell_text(row.get("title", ""))
                identifier = str(number) if self.numbered else _identifier(part, line, row.get("id", ""), number)
                yield {"id": identifier, **({"title": title} if title else {}), "text": cell_text(row["text"])}


@dataclass
class _DocumentRows:
    """Findings while the documents are read for the first time."""

    first: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Id -> the row that used it first, and the hash of its text."""
    left_out: set[tuple[int, int]] = field(default_factory=set)
    without_text: list[str] = field(default_factory=list)
    without_id: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    clashes: list[str] = field(default_factory=list)
    documents: int = 0


def read_documents(parts: Sequence[Part], ids_matter: bool) -> ImportedDocuments:
    """Return the ids of all documents.

    Raises UserError if no row has a text, or if two texts have one id and ids matter. Ids matter if other tables name
    documents by them, or if the user named their column. Otherwise all documents are numbered.
    """
    found = _DocumentRows()
    for which, part in enumerate(parts):
        for line, row in part.rows():
            _add(found, which, part, line, row.get("id", ""), cell_text(row["text"]))
    if not found.documents:
        columns = ", ".join(repr(column) for part in parts for column in part.texts)
        raise UserError(
            f"{', '.join(str(part.table) for part in parts)}: no text in {columns}: name it with text (--text)",
        )
    if found.clashes and ids_matter:
        raise UserError(
            f"{_first_clash(found)}: give every document an id of its own, or name another column with id (--id)",
        )
    numbered = bool(found.clashes)
    ids = Ids(map(str, range(1, found.documents + 1))) if numbered else Ids(found.first)
    return ImportedDocuments(tuple(parts), ids, frozenset(found.left_out), numbered, tuple(_notices(parts, found)))


def _add(found: _DocumentRows, which: int, part: Part, line: int, cell: Cell, text: str) -> None:
    where, own = part.table.at(line), flat(cell)
    if not text:
        found.left_out.add((which, line))
        found.without_text.append(f"{where} ({own[:40]!r})" if own else where)
        return
    if ROUNDED_NUMBER.fullmatch(own):
        raise UserError(
            f"{where}: id {own!r} was rounded by a spreadsheet: format the column as text, and export it again"
        )
    if "id" in part.columns and not own:
        found.without_id.append(where)
    identifier, digest = _identifier(part, line, cell, found.documents + 1), hash(text)
    earlier, earlier_digest = found.first.setdefault(identifier, (where, digest))
    if earlier != where and earlier_digest == digest:
        found.left_out.add((which, line))
        found.twice.append(f"{where} ({own[:40]!r})")
        return
    if earlier != where:
        found.clashes.append(f"{where}: id {identifier[:40]!r} is already used for another text in {earlier}")
    found.documents += 1


def _identifier(part: Part, line: int, cell: Cell, number: int) -> str:
    return (flat(cell) or f"row-{line}") if "id" in part.columns else str(number)


def _notices(parts: Sequence[Part], found: _DocumentRows) -> Iterator[str]:
    for part in parts:
        if "id" not in part.columns:
            why = _why_numbered(part.table)
            yield f"{part.table}: {why}: documents are numbered in their order (id (--id) names a column)"
    if found.clashes:
        yield f"{_first_clash(found)}: documents are numbered in their order (id (--id) names another column)"
    if found.without_text:
        yield f"rows without a text are left out: {rows_named(found.without_text)}"
    if found.without_id:
        yield f"documents without an id are named after their row: {rows_named(found.without_id)}"
    if found.twice:
        yield f"repeated documents are taken once: {rows_named(found.twice)}"


def _first_clash(found: _DocumentRows) -> str:
    more = f" (and {len(found.clashes) - 1:,} more)" if len(found.clashes) > 1 else ""
    return f"{found.clashes[0]}{more}"


def _why_numbered(table: SourceTable) -> str:
    column = id_named(table)
    if not column:
        return "no column of ids"
    seen: dict[str, int] = {}
    for line, row in table:
        value = flat(row.get(column, ""))
        if value in seen or not value:
            fault = f"{value[:40]!r} in lines {seen[value]} and {line}" if value else f"none in line {line}"
            return f"column {column!r} has values that repeat or are missing ({fault})"
        seen[value] = line
    return f"column {column!r} holds no ids"
