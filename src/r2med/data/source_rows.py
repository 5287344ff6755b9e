"""Read the rows of a source: JSON Lines, or the cells of a table, checked by the type of the row.

Every fault is reported with file and line, and reading continues. `row_faults.py` has the words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from r2med.data.dataset import Query
from r2med.data.grades import GradeError, whole_grade
from r2med.data.problems import DocumentRow, Problems
from r2med.data.row_faults import TRUNCATED_MESSAGE, half_characters, json_fault, kind_of, row_faults
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import refuse_device

AnyRow = TypeVar("AnyRow", bound=BaseModel)


class SourceRow(BaseModel):
    """A row as it is in a file. Its types are exact, and fields that it does not declare are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)


Id = Annotated[str, BeforeValidator(lambda value: str(value) if type(value) is int else value)]
"""An id of a table of the hub, which may be a number."""


class TextLine(SourceRow):
    """A row with an id and a text."""

    id: str
    text: str


class DocumentLine(TextLine):
    """One row of a corpus."""

    title: str | None = None

    @property
    def titled_text(self) -> str:
        """The title and the text in one string, joined as by BEIR's evaluators."""
        return f"{self.title} {self.text}".strip() if self.title and self.title.strip() else self.text


class QueryLine(TextLine):
    """One row of a query file."""

    answer: str | None = None
    body_system: str | None = None
    excluded_ids: list[str] | None = None
    needs_inference: str | None = None
    options: list[Any] | dict[str, Any] | None = None


class JudgementLine(SourceRow):
    """One row of qrels."""

    q_id: str
    p_id: str
    score: int | float


class OpenRow(SourceRow):
    """A row with fields of any name, `model_extra`."""

    model_config = ConfigDict(extra="allow")


def read_lines(path: Path, problems: Problems) -> Iterator[tuple[int, str, bool]]:
    """Yield (line number, text, whether it ended in a newline) for each non-blank line of valid UTF-8."""
    refuse_device(path)
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            if not raw.strip():
                continue
            try:
                yield number, raw.decode("utf-8"), raw.endswith(b"\n")
            except UnicodeDecodeError as error:
                if error.end == len(raw) and error.reason == "unexpected end of data":
                    problems.add(path, number, TRUNCATED_MESSAGE)
                else:
                    message = f"invalid UTF-8 at byte {error.start + 1} of the line: save it as UTF-8"
                    problems.add(path, number, message, "invalid UTF-8: save it as UTF-8")


def read_rows(path: Path, row_type: type[AnyRow], problems: Problems) -> Iterator[tuple[int, AnyRow]]:
    """Yield (line number, row) for each line of a file that is a row of this type."""
    for number, line, ended in read_lines(path, problems):
        try:
            row = row_type.model_validate_json(line)
        except ValidationError:  # Python's reader of JSON accepts more, and knows more about what is wrong
            read = _read_again(line, ended, row_type, path, number, problems)
            if read is None:
                continue
            row = read
        yield number, row


def _read_again(
    line: str, ended: bool, row_type: type[AnyRow], path: Path, number: int, problems: Problems
) -> AnyRow | None:
    try:
        cells = json.loads(line)
    except (ValueError, RecursionError) as error:
        problems.add(path, number, json_fault(error, ended), "" if not ended else "bad JSON")
        return None
    if not isinstance(cells, dict):
        problems.add(path, number, f"not a JSON object but {kind_of(cells)}")
        return None
    half_written = list(half_characters(cells, columns_of(row_type)))
    for message in half_written:
        problems.add(path, number, message)
    row = checked_row(cells, row_type, path, number, problems)
    return None if half_written else row


def checked_row(
    cells: Mapping[str, Any], row_type: type[AnyRow], path: Path, line: int, problems: Problems
) -> AnyRow | None:
    """Return the row with these cells, or report their faults and return None."""
    try:
        return row_type.model_validate(cells)
    except ValidationError as error:
        for message, cause in row_faults(error, cells):
            problems.add(path, line, message, cause)
        return None


def checked_rows(
    rows: list[dict[str, Any]], row_type: type[AnyRow], path: Path, first: int, problems: Problems
) -> list[AnyRow] | list[AnyRow | None]:
    """Return the rows of a table from row `first` on, with None for those with faults, which are reported."""
    try:
        return _list_of(row_type).validate_python(rows)  # all in one call, which takes two thirds of the time
    except ValidationError:
        return [checked_row(cells, row_type, path, number, problems) for number, cells in enumerate(rows, first)]


@lru_cache(maxsize=32)  # a table of the hub has a type of its own
def _list_of(row_type: type[AnyRow]) -> TypeAdapter[list[AnyRow]]:
    return TypeAdapter(list[row_type])  # type: ignore[valid-type]


def columns_of(row_type: type[BaseModel]) -> dict[str, bool]:
    """Return the names that the fields of a row have in files, and True for those that must be there."""
    return {str(field.alias or name): field.is_required() for name, field in row_type.model_fields.items()}


def with_columns(row_type: type[AnyRow], columns: Mapping[str, str]) -> type[AnyRow]:
    """Return the type of a row whose fields have other names in a file."""
    names = ConfigDict(alias_generator=lambda field: columns.get(field, field))
    return type(row_type.__name__, (row_type,), {"model_config": names, "__module__": row_type.__module__})


def own_rows(file: Path, row_type: type[AnyRow], what: str, hint: str) -> Iterator[tuple[int, AnyRow]]:
    """Yield the number and the row of each line of a file that r2med writes, such as an overlay.

    Raises UserError if the file cannot be read, with the hint, or if a line is not of this type.
    """
    problems = Problems()
    try:
        for number, row in read_rows(file, row_type, problems):
            if problems.problems:
                break
            yield number, row
    except OSError as error:
        raise UserError(f"{file}: this {what} cannot be read ({error.strerror}): {hint}") from None
    for problem in problems.problems:
        raise UserError(f"{file}:{problem.line}: not a line of this {what}: {problem.message}")


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One row of a query file, with its file and line for messages."""

    query: Query
    """The query. Its excluded documents may be relevant, because the judgements are another file."""
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class JudgementRow:
    """One line of qrels."""

    query: str
    document: str
    grade: int
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class AspectRow:
    """One aspect of the answer to a query, with the documents that support it."""

    query: str
    id: str
    weight: float
    documents: tuple[str, ...]
    path: Path
    line: int


def document_row(identifier: str, text: str, path: Path, line: int, problems: Problems) -> DocumentRow | None:
    """Return a document, or report its fault and return None."""
    if not identifier:
        problems.add(path, line, "empty id: every document needs one")
        return None
    if not text.strip():
        problems.flaw(
            path,
            line,
            f"document {identifier!r} has an empty text",
            "document with an empty text",
            check="empty-documents",
        )
    return DocumentRow(identifier, text, path, line)


def query_row(query: QueryLine, path: Path, line: int, problems: Problems) -> QueryRow | None:
    """Return a query, or report its fault and return None."""
    if not query.id:
        problems.add(path, line, "empty id: every query needs one")
        return None
    if not query.text.strip():
        problems.flaw(
            path, line, f"query {query.id!r} has an empty text", "query with an empty text", check="scorable-queries"
        )
    options = _options(query, path, line, problems)
    texts = query.answer or "", query.body_system or ""
    row = Query(query.id, query.text, *texts, tuple(query.excluded_ids or ()), query.needs_inference or "", options)
    return QueryRow(row, path, line)


def _options(query: QueryLine, path: Path, line: int, problems: Problems) -> tuple[str, ...]:
    """Return the options of a multiple-choice question. Options without the answer are reported and left out."""
    stated = query.options or []
    texts = stated.values() if isinstance(stated, dict) else stated  # {"A": "gout", …} or a list
    options = tuple(text for text in texts if text is not None)  # a table has a cell for each letter
    if options and (query.answer not in options or len(set(map(str, options))) < max(2, len(options))):
        message = f"query {query.id!r}: its options must be two or more different texts, and one of them the answer"
        problems.flaw(path, line, message, "options without the answer")
        return ()
    return options


def judgement_row(judgement: JudgementLine, path: Path, line: int, problems: Problems) -> JudgementRow | None:
    """Return a judgement of JSON or Parquet, or report its fault and return None."""
    try:
        grade = whole_grade(judgement.score)
    except GradeError as error:
        problems.add(path, line, f"score {str(judgement.score)[:20]} {error.fault}", f"score {error.fault}")
        return None
    return JudgementRow(judgement.q_id, judgement.p_id, grade, path, line)
