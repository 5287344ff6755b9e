"""What the tables of a user hold: documents, questions or judgements, and which column is what.

Names are a hint and contents decide where they can: an id column has no value twice, and a column of relevant documents
holds ids of documents. What was guessed is shown before anything is written, and every column can be named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from r2med.data.table_files import Cell, Table
from r2med.errors import UserError, nearest

Kind = Literal["documents", "questions", "judgements"]

ROLES: Mapping[Kind, tuple[str, ...]] = {
    "documents": ("id", "text", "title"),
    "questions": ("query_id", "query", "answer", "relevant", "grade"),
    "judgements": ("query_id", "relevant", "grade"),
}
"""What columns a table of each kind may have."""

NAMES: Mapping[str, frozenset[str]] = {
    role: frozenset(names.split())
    for role, names in {
        "id": "id docid documentid noteid passageid pid corpusid articleid pmid uid key nr no number",
        "text": "text contents content passage body document note notes abstract article description paragraph chunk "
        "report fulltext summary",
        "title": "title titel heading headline subject section",
        "query_id": "queryid qid questionid id nr no number",
        "query": "query queries question questions text prompt case vignette",
        "answer": "answer answers diagnosis solution expected",
        "relevant": "relevant relevantid relevantids relevantdocs relevantdocuments relevantnotes positives gold "
        "goldids docid docids documentid documentids noteid noteids passageid passageids corpusid pid evidence source",
        "grade": "grade grades score relevance rel rating",
        "links": "link links url urls reference references linked pages",
    }.items()
}
"""What people call a column, in small letters without anything else."""

_QUESTIONS = re.compile(r"quer|question|ask", re.IGNORECASE)
_OF_QUESTIONS = frozenset({"query", "queries", "question", "questions"})
_MOST = 0.5
"""The share of values above which a column counts as what most of its values are."""
_SEPARATORS = (r"\n", ";", r"\|", ",", r"\s+")


@dataclass(frozen=True)
class Part:
    """A table, what it holds, and its column for each role that it has."""

    table: Table
    kind: Kind
    columns: Mapping[str, str]

    def rows(self) -> Iterator[tuple[int, Mapping[str, Cell]]]:
        """Yield the number of each row and its cells by role."""
        for line, row in self.table:
            yield line, {role: row.get(column, "") for role, column in self.columns.items()}


def guess_parts(tables: Sequence[Table], named: Mapping[str, str]) -> list[Part]:
    """Return what each table holds; `named` are the columns that the user named, by role.

    Raises UserError if a named column does not exist, or if there are no documents.
    """
    _check_named(tables, named)
    kinds = _kinds(tables, named)
    if "documents" not in kinds:
        raise UserError(
            f"no documents in {', '.join(map(str, tables))}: give the table that is to be searched as well, "
            "or name its column with --text"
        )
    documents = [_documents(table, named) for table, kind in zip(tables, kinds, strict=True) if kind == "documents"]
    ids = set().union(*map(_ids, documents))
    others = [
        Part(table, kind, _columns(table, kind, named, ids))
        for table, kind in zip(tables, kinds, strict=True)
        if kind != "documents"
    ]
    return [*documents, *others]


def question_columns(table: Table, named: Mapping[str, str]) -> dict[str, str]:
    """Return role -> column of a table of questions with links; `named` are the columns that the user named, by role.

    Raises UserError if a named column does not exist.
    """
    for column in named.values():
        if column not in table.columns:
            columns = ", ".join(table.columns)
            raise UserError(f"{table}: no column {column!r}{nearest(column, table.columns)}: {columns}")
    links = named.get("links") or _column(table, table.columns, "links", ())
    return {**_columns(table, "questions", named, ()), **({"links": links} if links else {})}


def split_ids(cell: Cell, known: Collection[str]) -> list[str]:
    """Return the ids in a cell: a list, or a text in which separators stand between ids that are known."""
    if not isinstance(cell, str):
        return [part.strip() for part in cell if part.strip()]
    text = cell.strip()
    if text in known or not text:
        return [text] if text else []
    if text[0] == "[" and text[-1] == "]":
        try:
            return [str(part).strip() for part in ast.literal_eval(text)]
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            text = text[1:-1]
    ways = [[part for each in re.split(separator, text) if (part := each.strip(" \"'"))] for separator in _SEPARATORS]
    return max(
        ways, key=lambda parts: sum(_without_grade(part, known)[0] in known for part in parts) / max(len(parts), 1)
    )


def _without_grade(part: str, known: Collection[str]) -> tuple[str, str]:
    """Return an id and its grade, if it is written ID:GRADE or ID=GRADE and the id is one that is known."""
    match = re.fullmatch(r"(.+?)\s*[:=]\s*(\d+)", part)
    return (match[1], match[2]) if match and part not in known and match[1] in known else (part, "")


def graded_ids(cell: Cell, known: Collection[str]) -> list[tuple[str, str]]:
    """Return each id in a cell with the grade that stands beside it, if one does."""
    return [_without_grade(part, known) for part in split_ids(cell, known)]


_GRADES = {"yes": 1, "true": 1, "x": 1, "relevant": 1, "no": 0, "false": 0, "irrelevant": 0, "not relevant": 0}
"""Grades that are words."""


def grade_of(word: str) -> int | None:
    """Return the grade that a word means: a whole number, or yes and no; None if it means none."""
    text = word.strip().lower()
    number = re.fullmatch(r"(-?\d{1,9})(?:[.,]0+)?", text)
    return int(number[1]) if number else _GRADES.get(text)


def is_grade(cell: str) -> bool:
    """Return whether all of a cell's words are grades; there may be one for each of several ids."""
    return all(grade_of(word) is not None for word in re.split(r"[;|,]", cell))


def _check_named(tables: Sequence[Table], named: Mapping[str, str]) -> None:
    columns = [column for table in tables for column in table.columns]
    for role, column in named.items():
        if column not in columns:
            flag = role.replace("_", "-")
            raise UserError(f"--{flag} {column}: no such column{nearest(column, columns)}: {', '.join(columns)}")


def _kinds(tables: Sequence[Table], named: Mapping[str, str]) -> list[Kind]:
    """Return what each table holds; one that names the ids of another, beside its own, asks for what is in it."""
    kinds = [_kind(table, named) for table in tables]
    documents = [_documents(table, named) for table, kind in zip(tables, kinds, strict=True) if kind == "documents"]
    for part in documents if len(documents) > 1 and "text" not in named else ():
        ids = set().union(*(_ids(other) for other in documents if other is not part))
        if any(_holds(part.table, column, ids) for column in part.table.columns if column != part.columns.get("id")):
            kinds[tables.index(part.table)] = "questions"
    return kinds


def _kind(table: Table, named: Mapping[str, str]) -> Kind:
    """Return what a table holds: by the columns that the user named, else by names and contents."""
    if named.get("query") in table.columns:
        return "questions"
    if named.get("text") in table.columns:
        return "documents"
    names = {_plain(column) for column in table.columns}
    longest = max(_words(table, column) for column in table.columns)
    if longest < 2 and names & NAMES["query_id"] and names & NAMES["relevant"]:
        return "judgements"
    if names & _OF_QUESTIONS or _QUESTIONS.search(table.sheet or table.path.stem):
        return "questions"
    asked = max(_share(table, column, lambda cell: cell.endswith("?")) for column in table.columns)
    return "questions" if asked > _MOST else "documents"


def _documents(table: Table, named: Mapping[str, str]) -> Part:
    return Part(table, "documents", _columns(table, "documents", named, ()))


def _columns(table: Table, kind: Kind, named: Mapping[str, str], ids: Collection[str]) -> dict[str, str]:
    """Return role -> column of a table: first the text, the longest of those with its name or of all; then the rest."""
    text_role = "text" if kind == "documents" else "query"
    chosen: dict[str, str] = {}
    roles = ROLES[kind]
    for role in sorted(roles, key=lambda role: (role != text_role, roles.index(role))):
        column = named[role] if named.get(role) in table.columns else None
        if column is None and role not in named:
            free = [column for column in table.columns if column not in chosen.values()]
            column = _longest(table, free, role) if role == text_role else _column(table, free, role, ids)
        if column is not None:
            chosen[role] = column
    return {role: chosen[role] for role in roles if role in chosen}


def _longest(table: Table, free: Sequence[str], role: str) -> str:
    by_name = [column for column in free if _plain(column) in NAMES[role]]
    return max(by_name or free, key=lambda column: _words(table, column))


def _column(table: Table, free: Sequence[str], role: str, ids: Collection[str]) -> str | None:
    """Return the column of a role that is not the text's, if there is one."""
    by_name = [column for column in free if _plain(column) in NAMES[role]]
    if role == "id":
        one_word = [column for column in free if _is_id(table, column)]
        return next(iter([column for column in by_name if column in one_word] or one_word), None)
    holding = [column for column in free if _holds(table, column, ids)]
    if role == "query_id":
        one_word = [column for column in by_name if _words(table, column) <= 1]
        # Numbers of questions may be numbers of documents as well: then another column names the documents.
        others = NAMES["relevant"] | NAMES["grade"] | NAMES["answer"]
        apart = [column for column in free if _is_id(table, column) and _plain(column) not in others]
        apart = [column for column in apart if column not in holding or len(holding) > 1]
        return next(iter(one_word or apart), None)
    if role == "relevant":
        return next(iter([column for column in by_name if column in holding] or by_name or holding), None)
    if role == "grade":
        by_name = [column for column in by_name if _share(table, column, is_grade) > _MOST]
    return next(iter(by_name), None)


def _holds(table: Table, column: str, ids: Collection[str]) -> bool:
    """Return whether most cells of a column name an id."""
    return _share(table, column, lambda cell: any(part in ids for part, _ in graded_ids(cell, ids))) > _MOST


def _ids(part: Part) -> set[str]:
    column = part.columns.get("id")
    return {word for _, row in part.table if (word := _word(row.get(column, "")))} if column else set()


def _is_id(table: Table, column: str) -> bool:
    """Return whether a column has one word in every row, and none twice."""
    values = [_word(row.get(column, "")) for row in table.sample]
    return all(values) and len(set(values)) == len(values) and max(len(value.split()) for value in values) == 1


def id_named(table: Table) -> str:
    """Return the column that is called as ids are, whatever it holds; empty if there is none."""
    return next((column for column in table.columns if _plain(column) in NAMES["id"]), "")


def _words(table: Table, column: str) -> float:
    cells = [_word(row.get(column, "")) for row in table.sample]
    return sum(len(cell.split()) for cell in cells) / max(len(cells), 1)


def _share(table: Table, column: str, is_so: Callable[[str], bool]) -> float:
    cells = [cell for row in table.sample if (cell := _word(row.get(column, "")))]
    return sum(map(is_so, cells)) / max(len(cells), 1)


def _word(cell: Cell) -> str:
    return (cell if isinstance(cell, str) else ";".join(cell)).strip()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
