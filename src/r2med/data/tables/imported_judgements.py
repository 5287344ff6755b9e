"""Read the judgements of an import: the documents that a row names, and their grades."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from r2med.data.tables.column_contents import is_date
from r2med.data.tables.columns import Part
from r2med.data.tables.grade_words import grade_of, is_mark
from r2med.data.tables.id_cells import graded_ids
from r2med.data.tables.id_matching import Ids, difference_of_ids
from r2med.data.tables.imported_documents import rows_named
from r2med.data.tables.imported_questions import ImportedQuestions, row_key
from r2med.data.tables.table import Cell, flat
from r2med.foundation.core.errors import UserError

Pair = tuple[str, str]


@dataclass(frozen=True)
class ImportedJudgements:
    """Grades by (question, document), and notices about ids that did not match."""

    grades: Mapping[Pair, int]
    notices: tuple[str, ...] = ()


@dataclass
class _JudgedRows:
    """Findings while the judgements are read."""

    grades: dict[Pair, int] = field(default_factory=dict)
    first: dict[Pair, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    ungraded: list[str] = field(default_factory=list)
    rows: int = 0
    documents: int = 0


def read_judgements(parts: Sequence[Part], asked: ImportedQuestions, documents: Ids) -> ImportedJudgements:
    """Return the judgements of all tables.

    Raises UserError if no judgement names a known document or question, if an id is spelled in another way than that of
    the document or question, if a cell is not a grade, or if a pair has two different grades.
    """
    found, questions = _JudgedRows(), Ids(asked.questions)
    for part in parts:
        if "relevant" in part.columns:
            _read(found, part, asked, questions, documents)
    if found.unknown and len(found.unknown) == found.documents:
        example = next(iter(documents))
        dates = "write dates in the same way; " if is_date(example) else ""
        raise UserError(
            f"no judgement names a document: {rows_named(found.unknown)}; ids of documents are like {example!r}; "
            f"{dates}relevant (--relevant) names another column",
        )
    if found.unasked and questions and len(found.unasked) == found.rows:
        example = next(iter(questions))
        raise UserError(
            f"no judgement names a question: {rows_named(found.unasked)}; ids of questions are like {example!r}"
        )
    return ImportedJudgements(found.grades, tuple(_notices(found)))


def _read(found: _JudgedRows, part: Part, asked: ImportedQuestions, questions: Ids, documents: Ids) -> None:
    column = part.columns.get("grade")
    marked = column is not None and all(
        is_mark(cell) for row in part.table.sample if (cell := flat(row.get(column, "")))
    )
    above = ""
    for line, row in part.rows():
        where = part.table.at(line)
        own = asked.rows.get(row_key(part, line)) or flat(row.get("query_id", "")) or above
        above = own
        pairs = list(_judged(part, where, row, documents, "0" if marked else ""))
        found.rows += bool(pairs)
        if pairs and not _is_known(where, own, questions, "question"):
            found.unasked.append(f"{where} ({own[:40]!r})")
        for document, grade in pairs:
            _add(found, where, (own, document), grade, documents)


def _is_known(where: str, word: str, ids: Ids, what: str) -> bool:
    """Return True if an id is known. Raises UserError if it is, but in another spelling."""
    identifier = ids.find(word)
    if identifier is not None and identifier != word:
        raise UserError(
            f"{where}: no {what} has the id {word[:40]!r}, but one has {identifier[:40]!r}, which differs only in "
            f"{difference_of_ids(word, identifier)}: write ids alike in all tables, in columns formatted as text"
        )
    return identifier is not None


def _grade(where: str, column: str, word: str) -> int:
    grade = grade_of(word)
    if grade is None:
        raise UserError(f"{where}: {column} {word[:40]!r} is not a grade: use 0, 1, 2, … or yes, no")
    return grade


def _add(found: _JudgedRows, where: str, pair: Pair, grade: int | None, documents: Ids) -> None:
    found.documents += 1
    query, document = pair
    if not _is_known(where, document, documents, "document"):
        found.unknown.append(f"{where} ({document[:40]!r})")
    if grade is None:
        found.ungraded.append(f"{where} ({document[:40]!r})")
        return
    earlier = found.first.setdefault(pair, where)
    if found.grades.setdefault(pair, grade) != grade:
        both = f"question {query!r} and document {document!r}"
        raise UserError(f"{where}: {both} have grade {grade} here and {found.grades[pair]} in {earlier}: keep one")


def _judged(
    part: Part, where: str, row: Mapping[str, Cell], documents: Ids, unwritten: str
) -> Iterator[tuple[str, int | None]]:
    """Yield the documents that a row names with their grades: beside the id, in a grade column, or otherwise 1."""
    pairs = graded_ids(row["relevant"], documents)
    cell = row.get("grade", "")
    grades = cell if isinstance(cell, list) else cell.replace(";", "|").split("|")
    if len(grades) == 1:
        grades = grades * len(pairs)
    if len(grades) != len(pairs) and pairs:
        raise UserError(f"{where}: {len(pairs)} documents and {len(grades)} grades: give one for all, or one each")
    for (document, beside), word in zip(pairs, grades, strict=False):
        said = beside or word.strip() or (unwritten if "grade" in part.columns else "1")
        yield document, _grade(where, part.columns.get("grade", ""), said) if said else None


def _notices(found: _JudgedRows) -> Iterator[str]:
    if found.unknown:
        yield f"ids that no document has; they count as not found: {rows_named(found.unknown)}"
    if found.unasked:
        yield f"ids that no question has; they are not scored: {rows_named(found.unasked)}"
    if found.ungraded:
        yield f"documents without a grade are left out: {rows_named(found.ungraded)}"
