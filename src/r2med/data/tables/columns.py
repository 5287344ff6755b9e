"""Guess what a user's tables hold (documents, questions or judgements) and the role of each column.

Column names come first: a column is never read against its name. Where names say nothing, contents decide: an id column
rarely has a value twice, and a column of relevant documents holds document ids. The guesses are shown before anything
is written, and the user can name every column instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from r2med.data.tables.column_contents import (
    MAJORITY_SHARE,
    filled,
    holds_ids,
    holds_several_ids,
    holds_verdicts,
    is_date,
    is_id,
    is_nearly_id,
    mean_words,
    share,
)
from r2med.data.tables.column_names import (
    DOCUMENT_IDS,
    GENERIC_IDS,
    NAMES,
    OTHER_NAMES,
    QUESTION_FILE,
    QUESTION_IDS,
    QUESTION_NAMES,
    is_called_id,
    is_question_id,
    may_say_relevant,
    plain_name,
    says_not_relevant,
    says_verdict,
)
from r2med.data.tables.grade_words import is_count
from r2med.data.tables.id_matching import Ids
from r2med.data.tables.import_choices import NO_CHOICES, ImportChoices
from r2med.data.tables.judgement_columns import (
    check_judgements,
    grade_column,
    is_verdict_of_pair,
    negative_columns,
    relevant_column,
)
from r2med.data.tables.running_text import text_columns
from r2med.data.tables.table import Cell, Kind, SourceTable, flat
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.text.word_counts import count_words

Named = Mapping[str, str | Sequence[str]]
"""The columns that the user named, by role. There may be several text columns. An empty name means "no column"."""

ROLES: Mapping[Kind, tuple[str, ...]] = {
    "documents": ("id", "text", "title"),
    "questions": ("query_id", "query", "answer", "relevant", "grade"),
    "judgements": ("query_id", "relevant", "grade"),
}
"""The roles that the columns of each kind of table can have."""


@dataclass(frozen=True)
class Part:
    """A table, its kind, and the column of each role. `texts` are all columns that make up the document text."""

    table: SourceTable
    kind: Kind
    columns: Mapping[str, str]
    texts: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    def rows(self) -> Iterator[tuple[int, Mapping[str, Cell]]]:
        """Yield the row number and the cells by role of each row."""
        for line, row in self.table:
            yield line, self.cells(row)

    def cells(self, row: Mapping[str, Cell]) -> Mapping[str, Cell]:
        """Return the cells of a row by role. Several text columns are joined, each under its heading."""
        cells = {role: row.get(column, "") for role, column in self.columns.items()}
        if len(self.texts) > 1:
            filled_cells = [(column, text) for column in self.texts if (text := flat(row.get(column, "")))]
            cells["text"] = "\n".join(f"{_heading(column)} {text}" for column, text in filled_cells)
        return cells


def _heading(column: str) -> str:
    return column if column[-1] in ":.?!：。？！" else f"{column}:"


def guess_parts(
    tables: Sequence[SourceTable],
    named: Named,
    earlier: ImportChoices = NO_CHOICES,
) -> list[Part]:
    """Return each table with its kind and column roles; `named` are the columns that the user named, by role.

    Tables with the columns of an earlier import are read as it read them. Raises UserError if a named column does not
    exist, if there are no documents, or if two readings are possible.
    """
    _check_named(tables, named)
    kinds = list(zip(tables, _kinds(tables, named, earlier), strict=True))
    documents = [
        _documents(table, _named_here(table, kind, named, earlier)) for table, kind in kinds if kind == "documents"
    ]
    if not documents:
        raise UserError(
            f"no documents in {', '.join(map(str, tables))}: add a table with a row for each document (id, text), "
            "or read a column as documents with text (--text)",
        )
    guessed = [part for part in documents if not _names(named, "text") and not earlier.like(part.table, "documents")]
    if len(kinds) > 1:
        _check_texts(guessed)
    elif guessed:
        _check_questions_beside(guessed[0])
    ids = Ids(word for part in documents for word in _ids(part))
    others = [
        _judging(table, kind, _named_here(table, kind, named, earlier), ids, documents)
        for table, kind in kinds
        if kind != "documents"
    ]
    return [
        replace(part, notices=(*earlier.changed_table(part.table, part.kind), *part.notices))
        for part in (*documents, *others)
    ]


def _named_here(table: SourceTable, kind: Kind, named: Named, earlier: ImportChoices) -> Named:
    """Return the columns that were named for a table: those of the earlier import, except where the user names others.

    A named column that another table has leaves its role to the earlier import.
    """
    like = earlier.like(table, kind)
    if like is None:
        return named
    here = {role: given for role, given in named.items() if not given or _has_one(table, _names(named, role))}
    return {**named, **like.named, **here}


def _has_one(table: SourceTable, columns: Sequence[str]) -> bool:
    return any(column in table.columns for column in columns)


def question_columns(table: SourceTable, named: Mapping[str, str]) -> dict[str, str]:
    """Return role -> column of a table of questions with links. `named` are the columns that the user named, by role.

    Raises UserError if a named column does not exist.
    """
    for column in named.values():
        if column not in table.columns:
            columns = ", ".join(table.columns)
            raise UserError(f"{table}: no column {column!r}{nearest(column, table.columns)}: {columns}")
    links = named.get("links") or next(iter(_by_name(table.columns, "links")), None)
    chosen = _columns(table, "questions", {**named, "relevant": "", "grade": ""}, ())
    return {**chosen, **({"links": links} if links else {})}


def _names(named: Named, role: str) -> tuple[str, ...]:
    """Return the columns that the user named for a role."""
    columns = named.get(role, ())
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _check_named(tables: Sequence[SourceTable], named: Named) -> None:
    columns = [column for table in tables for column in table.columns]
    for role in named:
        for column in _names(named, role):
            if column and column not in columns:
                flag = role.replace("_", "-")
                shown = ", ".join(columns[:50])
                raise UserError(f"--{flag} {column}: no such column{nearest(column, columns)}: {shown}")


def _kinds(tables: Sequence[SourceTable], named: Named, earlier: ImportChoices) -> list[Kind]:
    """Return the kind of each table. A table that has its own ids and names ids of another table holds questions."""
    kinds = [_kind(table, named, earlier) for table in tables]
    documents = [_documents(table, named) for table, kind in zip(tables, kinds, strict=True) if kind == "documents"]
    for part in documents if len(documents) > 1 and "text" not in named else ():
        others = [other for other in documents if other is not part]
        if earlier.same_table(part.table):
            continue
        if any(other.table.columns == part.table.columns for other in others):
            continue  # one table in two files or sheets
        ids = Ids(word for other in others for word in _ids(other))
        own = part.columns.get("id")
        if any(holds_ids(part.table, column, ids) for column in part.table.columns if column != own):
            kinds[tables.index(part.table)] = "questions"
    return kinds


def _kind(table: SourceTable, named: Named, earlier: ImportChoices) -> Kind:
    """Return the kind of a table by the columns that the user named, the earlier import, or names and contents."""
    if _has_one(table, _names(named, "query")):
        return "questions"
    if _has_one(table, _names(named, "text")):
        return "documents"
    if same := earlier.same_table(table):
        return same.kind
    names = {plain_name(column) for column in table.columns}
    longest = max(mean_words(table, column, only_filled=True) for column in table.columns)
    question_ids = any(map(is_question_id, table.columns))
    judging = (question_ids or names & NAMES["query_id"]) and names & NAMES["relevant"]
    asking = names & QUESTION_NAMES
    if judging and (longest < 2 or (question_ids and not asking and any(map(says_verdict, table.columns)))):
        return "judgements"
    if asking or QUESTION_FILE.search(table.sheet or table.path.stem):
        return "questions"
    main = max(table.columns, key=lambda column: mean_words(table, column))  # a report may begin with a question
    asked = share(table, main, _asks)
    return "questions" if asked > MAJORITY_SHARE else "documents"


def _documents(table: SourceTable, named: Named) -> Part:
    columns = _columns(table, "documents", named, ())
    given = tuple(column for column in _names(named, "text") if column in table.columns)
    if given:
        return Part(table, "documents", columns, given)
    free = [column for column in table.columns if column not in (columns.get("id"), columns.get("title"))]
    return Part(table, "documents", columns, text_columns(table, free, columns["text"]))


def _check_questions_beside(part: Part) -> None:
    """Raise UserError if the only table holds documents beside questions, which may belong to the texts."""
    for column in part.table.columns:
        others = [text for text in part.texts if text != column]
        called = plain_name(column) in NAMES["text"] | OTHER_NAMES
        asks = share(part.table, column, _asks) > MAJORITY_SHARE and mean_words(part.table, column) >= 3
        if others and not called and asks:
            raise UserError(
                f"{part.table}: column {column!r} holds questions beside texts: write the questions into a table "
                "of their own, with the ids of their relevant documents; or read only the texts with text (--text "
                f"{quote(others[0])})",
            )


def _check_texts(documents: Sequence[Part]) -> None:
    """Raise UserError if one of several tables holds no texts, and no other role of a table fits it."""
    for part in documents:
        called = any(plain_name(column) in NAMES["text"] for column in part.texts)
        if not called and all(share(part.table, column, _is_text) <= MAJORITY_SHARE for column in part.texts):
            raise UserError(
                f"{part.table}: no column holds texts, questions, or ids of both questions and documents: leave "
                "the table out, or name its column with text (--text)",
            )


def _is_text(cell: str) -> bool:
    return count_words(cell) > 1 and not is_date(cell)


def _asks(cell: str) -> bool:
    return cell.endswith(("?", "？", "؟"))


def _judging(table: SourceTable, kind: Kind, named: Named, ids: Ids, documents: Sequence[Part]) -> Part:
    """Return a table of questions or judgements with its columns."""
    columns = _columns(table, kind, named, ids)
    no_grade = named.get("grade") == ""
    check_judgements(table, columns, "relevant" not in named, no_grade)
    free = [column for column in table.columns if column not in columns.values()]
    if "relevant" not in columns:
        _check_names_of_ids(table, free, documents)
        if not no_grade:
            _check_grades(table, free)
    negatives = negative_columns(table, free, ids)
    why = "says that its documents are not relevant: it is not used"
    return Part(table, kind, columns, notices=tuple(f"{table}: column {column!r} {why}" for column in negatives))


def _check_grades(table: SourceTable, free: Sequence[str]) -> None:
    """Raise UserError if several columns hold grades, as in a table with a column for each document."""
    grades = [
        column
        for column in free
        if plain_name(column) not in OTHER_NAMES and not is_called_id(column) and holds_verdicts(table, column)
    ]
    if len(grades) > 1:
        names = ", ".join(map(repr, grades[:3]))
        raise UserError(
            f"{table}: columns {names}{', …' if len(grades) > 3 else ''} hold grades, and no column names "
            "documents: write a row for each question and document, or leave them out with no_grade (--no-grade)",
        )


def _check_names_of_ids(table: SourceTable, free: Sequence[str], documents: Sequence[Part]) -> None:
    """Raise UserError if an unused column has the name of the documents' ids, and holds other ids."""
    for part in documents:
        own = part.columns.get("id", "")
        for column in free:
            if plain_name(column) not in ("", *GENERIC_IDS) and plain_name(column) == plain_name(own):
                cells = ", ".join(repr(cell[:20]) for cell in filled(table, column)[:3])
                if cells:
                    raise UserError(
                        f"{table}: column {column!r} has the name of the ids of {part.table}, but holds {cells}, which "
                        "are other ids: write the ids as the documents have them, or rename the column"
                    )


def _columns(table: SourceTable, kind: Kind, named: Named, ids: Collection[str]) -> dict[str, str]:
    """Return role -> column of a table. The text is chosen first: the longest column with a text's name, or of all.

    A table without the named column of texts has another one.
    """
    text_role = "text" if kind == "documents" else "query"
    chosen: dict[str, str] = {}
    roles = ROLES[kind]
    for role in sorted(roles, key=lambda role: (role != text_role, roles.index(role))):
        column = next((column for column in _names(named, role) if column in table.columns), None)
        if column is None and (role not in named or role == text_role):
            given = {*map(str, (name for name in named.values() if isinstance(name, str)))}
            free = [column for column in table.columns if column not in chosen.values() and column not in given]
            column = _guessed(table, free, role, chosen, ids)
        if column is not None:
            chosen[role] = column
    return {role: chosen[role] for role in roles if role in chosen}


def _guessed(
    table: SourceTable, free: Sequence[str], role: str, chosen: Mapping[str, str], ids: Collection[str]
) -> str | None:
    """Return the column of a role that the user did not name, or None."""
    if role in ("text", "query"):
        columns = [column for column in free if plain_name(column) not in NAMES["id"]] or free or table.columns
        asking = [column for column in columns if plain_name(column) in QUESTION_NAMES]
        if role == "query" and any(mean_words(table, column) > 1 for column in asking):
            columns = asking  # `text` beside `question` is a passage
        return max(_by_name(columns, role) or columns, key=lambda column: mean_words(table, column))
    if role == "id":
        return _id_column(table, free, chosen["text"])
    if role == "query_id":
        return _query_id_column(table, free, chosen.get("query", ""), ids)
    if role == "relevant":
        return relevant_column(table, free, ids)
    if role == "grade":
        return grade_column(table, free, chosen.get("relevant"), ids)
    found = _by_name(free, role)
    if role == "answer":
        found = [column for column in found if not is_verdict_of_pair(table, column, chosen["query"])]
    return next(iter(found), None)


def _by_name(columns: Sequence[str], role: str) -> list[str]:
    return [column for column in columns if plain_name(column) in NAMES[role]]


def _query_id_column(table: SourceTable, free: Sequence[str], query: str, ids: Collection[str]) -> str | None:
    """Return the column of question ids, or None. It never holds several document ids."""
    free = [
        column
        for column in free
        if not may_say_relevant(column) and not says_not_relevant(column) and not holds_several_ids(table, column, ids)
    ]
    # A table of judgements may use generic names for both id columns. The question ids then come first.
    by_name = [column for column in free if plain_name(column) in NAMES["query_id"] or is_question_id(column)]
    one_word = sorted(
        (column for column in by_name if mean_words(table, column) <= 1),
        key=lambda column: plain_name(column) not in QUESTION_IDS and not is_question_id(column),
    )
    # Question numbers can be equal to document numbers, if they count the rows. Then another column names documents.
    holding = [column for column in free if holds_ids(table, column, ids)]
    others = NAMES["relevant"] | NAMES["grade"] | NAMES["answer"]
    apart = [
        column
        for column in free
        if is_id(table.sample, column) and plain_name(column) not in others and not says_verdict(column)
        if not holds_verdicts(table, column)
        if column not in holding or (len(holding) > 1 and is_count(filled(table, column)))
    ]
    texts = filled(table, query) if query else []
    if len(set(texts)) < len(texts):
        apart = []  # a question in several rows would have several ids
    return next(iter(one_word or apart), None)


def _id_column(table: SourceTable, free: Sequence[str], text: str) -> str | None:
    """Return the column of document ids: one with such a name, even if a few values repeat, or the first with ids."""
    rows = [row for row in table.sample if flat(row.get(text, ""))]  # other rows are sums and the like, not documents
    exact = [column for column in free if is_id(rows, column)]
    nearly = [column for column in free if is_called_id(column) and is_nearly_id(rows, column)]
    own = [column for column in nearly if plain_name(column) in DOCUMENT_IDS]
    named = [column for column in nearly if column in exact]
    return next(iter([column for column in own if column in exact] or own or named or nearly or exact), None)


def _ids(part: Part) -> tuple[str, ...]:
    column = part.columns.get("id")
    return part.table.values(column) if column else ()


def id_named(table: SourceTable) -> str:
    """Return the column that has the name of an id column, whatever it holds; empty if there is none."""
    return next((column for column in table.columns if is_called_id(column)), "")
