"""Import a user's tables into an R2MED folder. Columns are guessed or named, and the folder is written as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

from r2med.data.dataset_cards import cards
from r2med.data.tables.columns import Kind, Named, Part, guess_parts
from r2med.data.tables.imported_documents import ImportedDocuments, read_documents, rows_named
from r2med.data.tables.imported_folder import replace_folder, require_imported, write_mark
from r2med.data.tables.imported_judgements import ImportedJudgements, read_judgements
from r2med.data.tables.imported_questions import ImportedQuestions, read_questions
from r2med.data.tables.plain_cells import check_cells
from r2med.data.tables.table import TableOptions
from r2med.data.tables.table_files import open_tables
from r2med.data.tables.workbooks import WORKBOOKS, sheet_names
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.notices import Notice, Setting
from r2med.foundation.store.files import exclusive, json_line, scratch_beside, sync, write_atomically
from r2med.foundation.text.language_guess import LanguageGuess, guess_language
from r2med.foundation.text.search_languages import ENGLISH

UPDATE_ADVICE = Notice("name another folder, or replace it with ", Setting("import_data", update=True))
"""The advice of an import if the folder exists already."""

LANGUAGE_SAMPLE = 200
"""Number of documents that are read to guess the language."""


@dataclass(frozen=True)
class Import:
    """The tables that become a dataset, and the roles of their columns."""

    parts: tuple[Part, ...]
    ids_named: bool = False
    cell_notices: tuple[str, ...] = ()

    @property
    def notices(self) -> list[str]:
        """Notices about the files, and about rows and cells that do not fit."""
        tables = [notice for part in self.parts for notice in (*part.table.notices, *part.notices)]
        rows = [*self._catalogue.notices, *self._asked.notices, *self._judged.notices]
        return [*tables, *self.cell_notices, *self._left_out(), *rows]

    @property
    def counts(self) -> dict[Kind, int]:
        """The numbers of documents, questions and judgements."""
        return {
            "documents": len(self._catalogue.ids),
            "questions": len(self._asked.questions),
            "judgements": len(self._judged.grades),
        }

    @property
    def relevant(self) -> int:
        """The number of judgements with a grade above 0."""
        return sum(grade > 0 for grade in self._judged.grades.values())

    @cached_property
    def language(self) -> LanguageGuess | None:
        """The language that the first documents look like; None if they look like no language that is known."""
        return guess_language(document["text"] for document in islice(self._documents(), LANGUAGE_SAMPLE))

    def write(self, folder: Path, *, update: bool = False) -> None:
        """Write the dataset folder, with a card that states the language if it is not English.

        Raises UserError if the folder exists already, or if a cell cannot be understood.

        With `update`, a folder that an import wrote is replaced. Imports into one folder wait for each other.
        """
        with exclusive(folder.parent / f".{folder.name}.lock"):
            self._write(folder, update)

    def _write(self, folder: Path, update: bool) -> None:
        imported = require_imported(folder) if update else []
        if not imported:
            require_new(folder, UPDATE_ADVICE)
        # A killed import leaves a copy of the texts behind, which is removed. A folder ending in .old may be the only
        # copy left, and stays.
        with scratch_beside(folder) as scratch:
            for name, rows in (("corpus", self._documents()), ("query", self._queries()), ("qrels", self._qrels())):
                # A file without rows would be a fault. A missing file means that there are no rows yet.
                if (first := next(rows, None)) is not None:
                    write_atomically(scratch / f"{name}.jsonl", map(json_line, chain((first,), rows)))
            write_mark(scratch)
            # The mark does not list the card, which belongs to the user from now on. An update keeps it.
            if self.language and self.language.code != ENGLISH:
                write_atomically(scratch / "card.toml", _card(folder.resolve().name, self.language).encode())
            if imported:
                replace_folder(folder, scratch, imported)
            else:
                _take_name(scratch, folder)
        sync(folder.parent)

    def _left_out(self) -> Iterator[str]:
        """Yield a notice about rows that are not data, after all tables were read."""
        found = {part.table.at(line): what for part in self.parts for line, what in sorted(part.table.left_out.items())}
        if found:
            yield f"rows that are not data are left out: {rows_named([f'{at} ({what})' for at, what in found.items()])}"

    def _of(self, kind: Kind) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]

    @cached_property
    def _catalogue(self) -> ImportedDocuments:
        judged = any("relevant" in part.columns for part in self.parts)
        return read_documents(self._of("documents"), judged or self.ids_named)

    @cached_property
    def _asked(self) -> ImportedQuestions:
        return read_questions(self._of("questions"))

    @cached_property
    def _judged(self) -> ImportedJudgements:
        parts = [*self._of("questions"), *self._of("judgements")]
        return read_judgements(parts, self._asked, self._catalogue.ids)

    def _documents(self) -> Iterator[dict[str, str]]:
        yield from self._catalogue.documents()

    def _queries(self) -> Iterator[dict[str, str]]:
        yield from self._asked.questions.values()

    def _qrels(self) -> Iterator[dict[str, Any]]:
        for (query, document), grade in self._judged.grades.items():
            yield {"q_id": query, "p_id": document, "score": grade}


def _card(name: str, language: LanguageGuess) -> str:
    """Return the card of a folder. A folder with the name of a dataset that has a card remains like that dataset."""
    like = f'like = "{name}"\n' if name in cards() else ""
    return f'{like}languages = ["{language.code}"] # guessed by r2med data import\n'


def require_new(folder: Path, remedy: str = "name another folder") -> None:
    """Raise UserError if a folder that is to be written exists already. The message ends with `remedy`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: ", remedy)


def _take_name(scratch: Path, folder: Path) -> None:
    try:
        scratch.replace(folder)
    except OSError:
        require_new(folder, UPDATE_ADVICE)  # another import was faster
        raise


def plan_import(
    files: Sequence[Path | str],
    *,
    header: bool | None = None,
    skip_rows: Sequence[int] | int | None = None,
    sheets: Sequence[str] = (),
    encoding: str = "",
    keep_markup: bool = False,
    no_grade: bool = False,
    **columns: str | Sequence[str],
) -> Import:
    """Return the planned import of these files.

    `columns` names columns by role: id, text (one or several) and title of documents; query_id, query, answer, relevant
    and grade of questions. Other columns are guessed. `skip_rows` is the number of rows above the column names, for all
    files or for each file. `sheets` are the sheets of workbooks to read. `encoding` is that of CSV and similar files
    that are not UTF-8. With `keep_markup` texts of HTML or RTF are taken as they are. With `no_grade` no column holds
    grades, so every document that is named is relevant. Raises UserError if a file cannot be read.
    """
    if not files:
        raise UserError("import needs files: r2med data import notes.csv questions.xlsx -o mine")
    paths = list(dict.fromkeys(map(Path, files)))
    _check_sheets(paths, sheets)
    skipped = _skipped(paths, skip_rows)
    readings = [TableOptions(header, skip, tuple(sheets), encoding) for skip in skipped]
    tables = [table for path, reading in zip(paths, readings, strict=True) for table in open_tables(path, reading)]
    named: Named = {role: column for role, column in columns.items() if column}
    if no_grade:
        if "grade" in named:
            raise UserError(
                Setting("import_data", grade=...),
                " and ",
                Setting("import_data", no_grade=True),
                " exclude each other: choose one",
            )
        named = {**named, "grade": ""}
    parts = tuple(guess_parts(tables, named))
    return Import(parts, "id" in named, tuple(check_cells(parts, keep_markup)))


def _skipped(paths: Sequence[Path], skip_rows: Sequence[int] | int | None) -> Sequence[int | None]:
    if skip_rows is None or isinstance(skip_rows, int):
        return [skip_rows] * len(paths)
    if len(skip_rows) <= 1:
        return [*skip_rows, None][:1] * len(paths)
    if len(skip_rows) != len(paths):
        raise UserError(
            Setting("import_data", skip_rows=...),
            f": {len(skip_rows)} numbers for {len(paths)} files: give one for all, or one each",
        )
    return skip_rows


def _check_sheets(paths: Sequence[Path], sheets: Sequence[str]) -> None:
    if not sheets:
        return
    books = [path for path in paths if path.suffix.lower() in WORKBOOKS and path.is_file()]
    names = [name for path in books for name in sheet_names(path)]
    for sheet in sheets:
        if sheet not in names:
            raise UserError(
                Setting("import_data", sheets=[sheet]),
                f": no such sheet{nearest(sheet, names)}: {', '.join(names) or 'no workbook'}",
            )
