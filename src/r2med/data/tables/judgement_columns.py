"""Choose the columns that hold judgements: ids of relevant documents, and grades.

A wrong choice turns labels round, so nothing is chosen if the names and the cells allow two readings. The error then
shows both and names the argument that chooses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from shlex import quote

from r2med.data.tables.column_contents import (
    MAJORITY_SHARE,
    filled,
    holds_ids,
    holds_several_ids,
    holds_verdicts,
    mean_words,
    share,
)
from r2med.data.tables.column_names import (
    NAMES,
    OTHER_NAMES,
    is_called_id,
    may_say_relevant,
    names_documents,
    plain_name,
    says_not_relevant,
    says_relevant,
    says_something_else,
    says_verdict,
)
from r2med.data.tables.grade_words import LARGEST_SCALE, grade_of, is_grade, is_verdict_word
from r2med.data.tables.table import SourceTable, flat
from r2med.foundation.core.errors import UserError

_LEGEND = re.compile(r"(\d+)\s*[=:]\s*([^\W\d_]+)")
"""A number and its meaning in the name of a column, as `1 = best`."""

_LEGEND_AFTER = re.compile(r"([^\W\d_]+)\s*=\s*(\d+)")
"""The meaning of a number before it, as `yes = 1`."""

_QRELS_NAMES = frozenset(("corpusid", "pid", "iteration"))
"""Names of columns that only files of qrels have. In these files, 0 means not relevant even if it does not occur."""

SHOWN_CELLS = 3
"""Number of cells of a column that a message shows."""


def relevant_column(table: SourceTable, free: Sequence[str], ids: Collection[str]) -> str | None:
    """Return the column that names relevant documents, or None.

    Raises UserError if two columns could, or if the only one has a name that says "not relevant".
    """
    positive = [
        column
        for column in free
        if not says_not_relevant(column) and not says_something_else(column) and plain_name(column) not in OTHER_NAMES
    ]
    named = [column for column in positive if plain_name(column) in NAMES["relevant"] or may_say_relevant(column)]
    holding = [column for column in positive if holds_ids(table, column, ids)]
    both = _without_verdicts(table, [column for column in named if column in holding])
    if both:
        return _only(table, [column for column in both if may_say_relevant(column)] or both)
    apart = [column for column in named if not _holds_grades(table, column)]
    if said := [column for column in apart if says_relevant(column)]:
        return said[0]  # if it names no document, that is an error, and never another column
    if found := [column for column in holding if not holds_verdicts(table, column) and not says_verdict(column)]:
        return _only(table, found)
    if apart:
        return apart[0]
    _refuse_negatives(table, free, ids)
    elsewhere = [column for column in free if says_something_else(column) and holds_ids(table, column, ids)]
    if found := [column for column in (*holding, *elsewhere) if not says_verdict(column)]:
        why = f"holds {_cells(table, found[0])}, which are ids of documents, but may be something else"
        raise UserError(
            f"{table}: column {found[0]!r} {why}: name it with relevant (--relevant {quote(found[0])}), or leave "
            "it out of the table",
        )
    return None


def _without_verdicts(table: SourceTable, columns: Sequence[str]) -> Sequence[str]:
    """Return the columns without verdicts under a name like `relevant`, if any others remain."""
    ids = [column for column in columns if names_documents(column) or not _holds_grades(table, column)]
    return ids or columns


def _holds_grades(table: SourceTable, column: str) -> bool:
    return holds_verdicts(table, column) or (says_verdict(column) and share(table, column, is_grade) > MAJORITY_SHARE)


def _only(table: SourceTable, columns: Sequence[str]) -> str:
    if len(columns) > 1:
        readings = " or ".join(f"{column!r} ({_cells(table, column)})" for column in columns[:3])
        raise UserError(
            f"{table}: the relevant documents can be those of {readings}: choose with relevant (--relevant "
            f"{quote(columns[0])})",
        )
    return columns[0]


def _refuse_negatives(table: SourceTable, free: Sequence[str], ids: Collection[str]) -> None:
    for column in free:
        if says_not_relevant(column) and holds_ids(table, column, ids) and not holds_verdicts(table, column):
            raise UserError(
                f"{table}: column {column!r} names documents that are not relevant, and no column names relevant "
                "ones: name it with relevant (--relevant)",
            )


def negative_columns(table: SourceTable, free: Sequence[str], ids: Collection[str]) -> list[str]:
    """Return the unused columns that name documents which are not relevant."""
    return [column for column in free if says_not_relevant(column) and holds_ids(table, column, ids)]


def grade_column(table: SourceTable, free: Sequence[str], relevant: str | None, ids: Collection[str]) -> str | None:
    """Return the column of the grades of relevance, or None.

    Raises UserError if two columns could hold them, or if one holds verdicts and its name says nothing.
    """
    named = [
        column
        for column in free
        if says_verdict(column) and share(table, column, is_grade) > MAJORITY_SHARE and not _names_ids(column)
    ]
    strong = [column for column in named if says_relevant(column) or plain_name(column) in ("grade", "grades")]
    judged = relevant is not None and _is_pairs(table, relevant, ids)
    others = [
        column
        for column in free
        if judged and column not in named and plain_name(column) not in OTHER_NAMES and not _names_ids(column)
        if holds_verdicts(table, column) or share(table, column, is_verdict_word) > MAJORITY_SHARE
    ]
    candidates = strong or [*named, *(column for column in others if not says_not_relevant(column))]
    if len(candidates) > 1 and not all(_agree(table, candidates[0], column) for column in candidates[1:]):
        readings = " or ".join(f"{column!r} ({_cells(table, column)})" for column in candidates[:3])
        raise UserError(
            f"{table}: the grades can be those of {readings}: choose with grade (--grade {quote(candidates[0])}) "
            "or no_grade (--no-grade)",
        )
    if named:
        chosen = (strong or named)[0]
        _check_legend(table, chosen)
        words = [word for cell in filled(table, chosen) for word in re.split(r"[;|,]", cell)]
        if holds_ids(table, chosen, ids) and not all(grade_of(word) in LARGEST_SCALE for word in words):
            raise UserError(
                f"{table}: column {chosen!r} holds {_cells(table, chosen)}, which are ids of documents: if they are "
                "relevant, write a row for each; if not, leave the column out"
            )
        _check_scale(table, chosen, relevant, ids)
        return chosen
    for column in others:
        _ask(table, column)
    return None


def is_verdict_of_pair(table: SourceTable, column: str, query: str) -> bool:
    """Return True if a column called `answer` holds verdicts on pairs, as Prodigy writes them.

    Yes and no can also be answers to questions. But then a question does not have both.
    """
    cells = filled(table, column)
    if share(table, column, is_verdict_word) <= MAJORITY_SHARE:
        return False
    answers = {(flat(row.get(query, "")), flat(row.get(column, ""))) for row in table.sample}
    several = len(answers) > len({question for question, _ in answers})
    return several or not {"accept", "reject"}.isdisjoint(cells)


def _names_ids(column: str) -> bool:
    return is_called_id(column) and plain_name(column) not in NAMES["grade"]


def _ask(table: SourceTable, column: str) -> None:
    """Raise UserError if a column holds verdicts under a name that does not say so, and they are not all yes."""
    grades = [grade_of(cell) for cell in filled(table, column)]
    if all(grade == 1 for grade in grades) and len(grades) == len(table.sample):
        return
    if says_not_relevant(column):
        raise UserError(
            f"{table}: column {column!r} ({_cells(table, column)}) says that documents are not relevant: write a "
            "column 'relevant' with the opposite, or leave this one out with no_grade (--no-grade)",
        )
    rows = len(table.sample)
    yes = sum(grade is not None and grade > 0 for grade in grades)
    raise UserError(
        f"{table}: column {column!r} holds {_cells(table, column)}: with grade (--grade {quote(column)}) {yes:,} "
        f"of {rows:,} rows are relevant, with no_grade (--no-grade) all of them: choose one",
    )


def _is_pairs(table: SourceTable, relevant: str, ids: Collection[str]) -> bool:
    """Return True if a verdict could belong to each row: it names one document, or does not call them relevant."""
    return not may_say_relevant(relevant) or not holds_several_ids(table, relevant, ids)


def _agree(table: SourceTable, one: str, other: str) -> bool:
    return all(_is_yes(row.get(one, "")) == _is_yes(row.get(other, "")) for row in table.sample)


def _is_yes(cell: str | list[str]) -> bool | None:
    grade = grade_of(flat(cell))
    return None if grade is None else grade > 0


def check_judgements(table: SourceTable, columns: Mapping[str, str], asked: bool, no_grade: bool) -> None:
    """Raise UserError if a column holds relevance, but its words are unknown or no column names documents.

    `asked` is False if the user named the column of relevant documents.
    """
    used = set(columns.values()) - ({columns.get("grade", "")} if "relevant" not in columns else set())
    for column in table.columns:
        if column in used or says_not_relevant(column) or not mean_words(table, column):
            continue
        graded = share(table, column, is_grade) > MAJORITY_SHARE
        if says_relevant(column) and "relevant" not in columns and asked:
            why = "holds relevance, but no column holds document ids" if graded else "is not used"
            raise UserError(f"{table}: column {column!r} {why}: name it with relevant (--relevant)")
        unread = "relevant" in columns and "grade" not in columns and not no_grade
        judges = says_verdict(column) or _are_opposites(filled(table, column))
        if unread and judges and not graded and _is_choice(table, column) and not names_documents(column):
            raise UserError(
                f"{table}: column {column!r} holds {_cells(table, column)}: grades are 0, 1, 2, … or yes and no "
                "(no_grade (--no-grade) leaves it out)",
            )


def _is_choice(table: SourceTable, column: str) -> bool:
    """Return True if the cells are choices from a list, such as `1 - highly relevant`, and not remarks."""
    cells = filled(table, column)
    return mean_words(table, column) <= 2 or len(set(cells)) < len(cells)


def _are_opposites(cells: Sequence[str]) -> bool:
    """Return True if a cell is the negation of another one, as `retrieved` and `not retrieved`."""
    words = {" ".join(cell.lower().split()) for cell in cells}
    return any(word.partition(" ")[2] in words and says_not_relevant(word.partition(" ")[0]) for word in words)


def _check_legend(table: SourceTable, column: str) -> None:
    """Raise UserError if the name of a column of grades explains its numbers, and 0 does not mean not relevant."""
    legend = {int(number): grade_of(words) for number, words in _LEGEND.findall(column)}
    legend |= {int(number): grade_of(words) for words, number in _LEGEND_AFTER.findall(column)}
    turned = any(grade is not None and (grade > 0) != (number > 0) for number, grade in legend.items())
    if turned or (1 in legend and 0 not in legend and legend[1] != 1):
        raise UserError(
            f"{table}: column {column!r} explains its numbers, and 0 does not mean not relevant: write a column "
            "'relevant' in which 0 means not relevant and larger numbers mean more relevant, or leave this one out "
            "with no_grade (--no-grade)",
        )


def _check_scale(table: SourceTable, column: str, relevant: str | None, ids: Collection[str]) -> None:
    """Raise UserError if pairs have several grades, but no 0: on a scale from 1, 1 may mean not relevant.

    Documents that a person listed are relevant, whatever their grades are.
    """
    listed = relevant is not None and (may_say_relevant(relevant) or holds_several_ids(table, relevant, ids))
    if listed or not _QRELS_NAMES.isdisjoint(map(plain_name, table.columns)):
        return
    words = [word for cell in table.values(column) for word in re.split(r"[;|,]", cell)]
    grades = {grade for word in words if (grade := grade_of(word)) is not None}
    if len(grades) > 1 and min(grades) > 0:
        raise UserError(
            f"{table}: column {column!r} holds {_cells(table, column)}, but no 0: write 0 for documents that are "
            f"not relevant, or read all of them as relevant with grade (--grade {quote(column)})",
        )


def _cells(table: SourceTable, column: str) -> str:
    words = list(dict.fromkeys(filled(table, column)))
    shown = ", ".join(repr(word[:20]) for word in words[:SHOWN_CELLS])
    return f"{shown}, …" if len(words) > SHOWN_CELLS else shown
