"""Guess what a user's tables hold (documents, questions or judgements) and the role of each column.

Column names are a hint, and contents decide where they can: an id column rarely has a value twice, and a column of
relevant documents holds document ids. The guesses are shown before anything is written, and the user can name every
column instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from r2med.core.errors import UserError, nearest
from r2med.data.column_names import (
    DOCUMENT_IDS,
    NAMES,
    OTHER_NAMES,
    QUESTION_FILE,
    QUESTION_IDS,
    QUESTION_NAMES,
    RELEVANCE_NAMES,
    is_called_id,
    plain_name,
)
from r2med.data.grade_words import grade_of, is_grade
from r2med.data.id_matching import Ids
from r2med.data.running_text import text_columns
from r2med.data.table import Cell, SourceTable, flat

Kind = Literal["documents", "questions", "judgements"]
Named = Mapping[str, str | Sequence[str]]
"""The columns that the user named, by role. There may be several text columns."""

ROLES: Mapping[Kind, tuple[str, ...]] = {
    "documents": ("id", "text", "title"),
    "questions": ("query_id", "query", "answer", "relevant", "grade"),
    "judgements": ("query_id", "relevant", "grade"),
}
"""The roles that the columns of each kind of table can have."""

_MAJORITY_SHARE = 0.5
"""A column is of a type if more than this share of its values are of that type."""
_SEPARATORS = (r"\n", ";", r"\|", ",", "/", r"\s+", r"\s+(?:and|und|et|y)\s+|,")
_SURE_SEPARATORS = 4
"""The number of separators at the start of `_SEPARATORS` that ids rarely contain."""
_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([T ].*)?|\d{1,2}:\d\d(:\d\d)?|\d+[.,]\d+")


@dataclass(frozen=True)
class Part:
    """A table, its kind, and the column of each role. `texts` are all columns that make up the document text."""

    table: SourceTable
    kind: Kind
    columns: Mapping[str, str]
    texts: tuple[str, ...] = ()

    def rows(self) -> Iterator[tuple[int, Mapping[str, Cell]]]:
        """Yield the row number and the cells by role of each row."""
        for line, row in self.table:
            yield line, self.cells(row)

    def cells(self, row: Mapping[str, Cell]) -> Mapping[str, Cell]:
        """Return the cells of a row by role. Several text columns are joined, each under its heading."""
        cells = {role: row.get(column, "") for role, column in self.columns.items()}
        if len(self.texts) > 1:
            filled = [(column, text) for column in self.texts if (text := flat(row.get(column, "")))]
            cells["text"] = "\n".join(f"{_heading(column)} {text}" for column, text in filled)
        return cells


def _heading(column: str) -> str:
    return column if column[-1] in ":.?!" else f"{column}:"


def guess_parts(tables: Sequence[SourceTable], named: Named) -> list[Part]:
    """Return each table with its kind and column roles; `named` are the columns that the user named, by role.

    Raises UserError if a named column does not exist, or if there are no documents.
    """
    _check_named(tables, named)
    kinds = _kinds(tables, named)
    if "documents" not in kinds:
        raise UserError(
            f"no documents in {', '.join(map(str, tables))}: add the table to search, or name its column with "
            "import_tables(text=...)"
        )
    documents = [_documents(table, named) for table, kind in zip(tables, kinds, strict=True) if kind == "documents"]
    ids = Ids(word for part in documents for word in _ids(part))
    others = [
        Part(table, kind, _columns(table, kind, named, ids))
        for table, kind in zip(tables, kinds, strict=True)
        if kind != "documents"
    ]
    for part in others:
        _check_judgements(part)
    return [*documents, *others]


def question_columns(table: SourceTable, named: Mapping[str, str]) -> dict[str, str]:
    """Return role -> column of a table of questions with links. `named` are the columns that the user named, by role.

    Raises UserError if a named column does not exist.
    """
    for column in named.values():
        if column not in table.columns:
            columns = ", ".join(table.columns)
            raise UserError(f"{table}: no column {column!r}{nearest(column, table.columns)}: {columns}")
    links = named.get("links") or _column(table, table.columns, "links", ())
    return {**_columns(table, "questions", named, ()), **({"links": links} if links else {})}


def split_ids(cell: Cell, known: Collection[str]) -> list[str]:
    """Return the ids in a cell, which is a list or a text with separators between known ids."""
    if not isinstance(cell, str):
        return [part.strip() for part in cell if part.strip()]
    text = cell.strip()
    if text in known or not text:
        return [text] if text else []
    if text[0] == "[" and text[-1] == "]":
        try:
            return [str(part).strip() for part in ast.literal_eval(text)]
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            text = text[1:-1]
    ways = [[part for each in re.split(separator, text) if (part := each.strip(" \"'"))] for separator in _SEPARATORS]
    shares = [sum(_without_grade(part, known)[0] in known for part in parts) / max(len(parts), 1) for parts in ways]
    if not any(shares):  # no id is known: take the first separator of the list that occurs
        return next((parts for parts in ways[:_SURE_SEPARATORS] if len(parts) > 1), [text])
    return ways[shares.index(max(shares))]


def _without_grade(part: str, known: Collection[str]) -> tuple[str, str]:
    """Return an id and its grade, if it is written ID:GRADE or ID=GRADE and the id is known."""
    match = re.fullmatch(r"(.+?)\s*[:=]\s*(\d+)", part)
    return (match[1], match[2]) if match and part not in known and match[1] in known else (part, "")


def graded_ids(cell: Cell, known: Collection[str]) -> list[tuple[str, str]]:
    """Return each id in a cell with its grade, or with an empty grade if there is none."""
    return [_without_grade(part, known) for part in split_ids(cell, known)]


def named_texts(named: Named) -> tuple[str, ...]:
    """Return the text columns that the user named."""
    texts = named.get("text", ())
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _name(named: Named, role: str) -> str:
    column = named.get(role, "")
    return column if isinstance(column, str) else next(iter(column), "")


def _check_named(tables: Sequence[SourceTable], named: Named) -> None:
    columns = [column for table in tables for column in table.columns]
    for role, given in named.items():
        for column in (given,) if isinstance(given, str) else given:
            if column not in columns:
                flag = role.replace("_", "-")
                shown = ", ".join(columns[:50])
                raise UserError(f"--{flag} {column}: no such column{nearest(column, columns)}: {shown}")


def _kinds(tables: Sequence[SourceTable], named: Named) -> list[Kind]:
    """Return the kind of each table. A table that has its own ids and names ids of another table holds questions."""
    kinds = [_kind(table, named) for table in tables]
    documents = [_documents(table, named) for table, kind in zip(tables, kinds, strict=True) if kind == "documents"]
    for part in documents if len(documents) > 1 and "text" not in named else ():
        others = [other for other in documents if other is not part]
        if any(other.table.columns == part.table.columns for other in others):
            continue  # one table in two files or sheets
        ids = Ids(word for other in others for word in _ids(other))
        if any(_holds(part.table, column, ids) for column in part.table.columns if column != part.columns.get("id")):
            kinds[tables.index(part.table)] = "questions"
    return kinds


def _kind(table: SourceTable, named: Named) -> Kind:
    """Return the kind of a table by the columns that the user named, otherwise by column names and contents."""
    if _name(named, "query") in table.columns:
        return "questions"
    if any(column in table.columns for column in named_texts(named)):
        return "documents"
    names = {plain_name(column) for column in table.columns}
    longest = max(_words(table, column, filled=True) for column in table.columns)
    judging = names & NAMES["query_id"] and names & NAMES["relevant"]
    asking = names & QUESTION_NAMES
    if judging and (longest < 2 or (names & QUESTION_IDS and not asking and names & NAMES["grade"])):
        return "judgements"
    if asking or QUESTION_FILE.search(table.sheet or table.path.stem):
        return "questions"
    main = max(table.columns, key=lambda column: _words(table, column))  # a report may begin with a doctor's question
    asked = _share(table, main, lambda cell: cell.endswith("?"))
    return "questions" if asked > _MAJORITY_SHARE else "documents"


def _documents(table: SourceTable, named: Named) -> Part:
    columns = _columns(table, "documents", named, ())
    given = tuple(column for column in named_texts(named) if column in table.columns)
    if given:
        return Part(table, "documents", columns, given)
    free = [column for column in table.columns if column not in (columns.get("id"), columns.get("title"))]
    return Part(table, "documents", columns, text_columns(table, free, columns["text"]))


def _columns(table: SourceTable, kind: Kind, named: Named, ids: Collection[str]) -> dict[str, str]:
    """Return role -> column of a table. The text is chosen first: the longest column with a text's name, or of all."""
    text_role = "text" if kind == "documents" else "query"
    chosen: dict[str, str] = {}
    roles = ROLES[kind]
    for role in sorted(roles, key=lambda role: (role != text_role, roles.index(role))):
        column = _name(named, role) if _name(named, role) in table.columns else None
        if column is None and role not in named:
            free = [column for column in table.columns if column not in chosen.values()]
            if role == "id":
                column = _id_column(table, free, chosen["text"])
            else:
                column = _longest(table, free, role) if role == text_role else _column(table, free, role, ids)
        if column is not None:
            chosen[role] = column
    return {role: chosen[role] for role in roles if role in chosen}


def _longest(table: SourceTable, free: Sequence[str], role: str) -> str:
    by_name = [column for column in free if plain_name(column) in NAMES[role]]
    return max(by_name or free, key=lambda column: _words(table, column))


def _column(table: SourceTable, free: Sequence[str], role: str, ids: Collection[str]) -> str | None:
    """Return the column of a role other than the text, or None."""
    by_name = [column for column in free if plain_name(column) in NAMES[role]]
    holding = [column for column in free if _holds(table, column, ids)]
    if role == "query_id":
        # A table of judgements may use generic names for both id columns. The question ids then come first.
        one_word = sorted(
            (column for column in by_name if _words(table, column) <= 1),
            key=lambda column: plain_name(column) not in QUESTION_IDS,
        )
        # Question numbers can be equal to document numbers. Then another column names the documents.
        others = NAMES["relevant"] | NAMES["grade"] | NAMES["answer"]
        apart = [column for column in free if _is_id(table.sample, column) and plain_name(column) not in others]
        apart = [column for column in apart if column not in holding or len(holding) > 1]
        return next(iter(one_word or apart), None)
    if role == "relevant":
        return _relevant_column(table, by_name, holding)
    if role == "grade":
        by_name = [column for column in by_name if _share(table, column, is_grade) > _MAJORITY_SHARE]
    return next(iter(by_name), None)


def _id_column(table: SourceTable, free: Sequence[str], text: str) -> str | None:
    """Return the column of document ids: one with such a name, even if a few values repeat, or the first with ids."""
    rows = [row for row in table.sample if flat(row.get(text, ""))]  # other rows are sums and the like, not documents
    exact = [column for column in free if _is_id(rows, column)]
    nearly = [column for column in free if is_called_id(column) and _is_nearly_id(rows, column)]
    own = [column for column in nearly if plain_name(column) in DOCUMENT_IDS]
    named = [column for column in nearly if column in exact]
    return next(iter([column for column in own if column in exact] or own or named or nearly or exact), None)


def _relevant_column(table: SourceTable, by_name: Sequence[str], holding: Sequence[str]) -> str | None:
    """Return the column that names relevant documents. Grades that are equal to ids, such as 1, come last."""
    named = [column for column in by_name if not _holds_verdicts(table, column)]
    apart = [column for column in holding if not _holds_verdicts(table, column)]
    both = [column for column in named if column in apart]
    return next(iter(both or named or apart or holding), None)


def _holds_verdicts(table: SourceTable, column: str) -> bool:
    """Return True if most cells of a column are yes, no or a small number."""
    return (
        _share(table, column, lambda cell: (grade := grade_of(cell)) is not None and -1 <= grade <= 4) > _MAJORITY_SHARE
    )


def _check_judgements(part: Part) -> None:
    """Raise UserError if a column holds relevance, but its words are unknown or no column names documents."""
    used = set(part.columns.values()) - ({part.columns.get("grade", "")} if "relevant" not in part.columns else set())
    for column in part.table.columns:
        if column in used or plain_name(column) not in RELEVANCE_NAMES or not _words(part.table, column):
            continue
        if _share(part.table, column, is_grade) > _MAJORITY_SHARE:
            if "relevant" not in part.columns:
                why = "holds relevance, but no column holds document ids"
                raise UserError(f"{part.table}: column {column!r} {why}: name it with import_tables(relevant=...)")
        elif "grade" not in part.columns and _words(part.table, column) <= 2:
            words = dict.fromkeys(word for row in part.table.sample if (word := flat(row.get(column, ""))))
            shown = ", ".join(repr(word[:20]) for word in list(words)[:3])
            raise UserError(f"{part.table}: column {column!r} holds {shown}: grades are 0, 1, 2, … or yes and no")


def _holds(table: SourceTable, column: str, ids: Collection[str]) -> bool:
    """Return True if most cells of a column hold a known id."""
    return _share(table, column, lambda cell: any(part in ids for part, _ in graded_ids(cell, ids))) > _MAJORITY_SHARE


def _ids(part: Part) -> tuple[str, ...]:
    column = part.columns.get("id")
    return part.table.values(column) if column else ()


def _is_id(rows: Sequence[Mapping[str, Cell]], column: str) -> bool:
    """Return True if a column has one word in every row, and no word twice."""
    values = [flat(row.get(column, "")) for row in rows]
    return (
        bool(values)
        and all(values)
        and len(set(values)) == len(values)
        and max(len(value.split()) for value in values) == 1
        and plain_name(column) not in OTHER_NAMES
        and not all(map(_DATE.fullmatch, values))
    )


def _is_nearly_id(rows: Sequence[Mapping[str, Cell]], column: str) -> bool:
    """Return True if more than half of the rows have different values of a few words."""
    values = {value for row in rows if (value := flat(row.get(column, "")))}
    words = sum(len(value.split()) for value in values)
    return len(values) > _MAJORITY_SHARE * len(rows) and words <= 3 * len(values)


def id_named(table: SourceTable) -> str:
    """Return the column that has the name of an id column, whatever it holds; empty if there is none."""
    return next((column for column in table.columns if is_called_id(column)), "")


def _words(table: SourceTable, column: str, filled: bool = False) -> float:
    """Return the mean number of words per cell. Empty cells count unless `filled` is true."""
    cells = [cell for row in table.sample if (cell := flat(row.get(column, ""))) or not filled]
    return sum(len(cell.split()) for cell in cells) / max(len(cells), 1)


def _share(table: SourceTable, column: str, is_so: Callable[[str], bool]) -> float:
    cells = [cell for row in table.sample if (cell := flat(row.get(column, "")))]
    return sum(map(is_so, cells)) / max(len(cells), 1)
