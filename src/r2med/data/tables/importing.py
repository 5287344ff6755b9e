"""Import a user's tables into an R2MED folder. Columns are guessed or named, and the folder is written as a whole."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Any

from r2med.data.dataset_cards import cards, read_card
from r2med.data.tables.columns import Named, Part, guess_parts
from r2med.data.tables.import_choices import NO_CHOICES, EarlierTable, ImportChoices
from r2med.data.tables.imported_documents import ImportedDocuments, read_documents, rows_named
from r2med.data.tables.imported_folder import replace_folder, require_imported, write_mark
from r2med.data.tables.imported_judgements import ImportedJudgements, read_judgements
from r2med.data.tables.imported_questions import ImportedQuestions, read_questions
from r2med.data.tables.plain_cells import check_cells
from r2med.data.tables.table import Kind, TableOptions
from r2med.data.tables.table_files import open_tables
from r2med.data.tables.workbooks import WORKBOOKS, sheet_names
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.store.files import json_line, scratch_beside, sync, write_atomically
from r2med.foundation.store.sharing import exclusive
from r2med.foundation.text.language_guess import LanguageGuess, guess_language, mixed_languages
from r2med.foundation.text.personal_data import OTHER_LANGUAGES, not_looked_for
from r2med.foundation.text.placeholders import deidentified
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.search_languages import ENGLISH, search_language, search_languages

log = logging.getLogger("r2med")

UPDATE_ADVICE = "name another folder, or replace it with update (--update)"
"""The advice of an import if the folder exists already."""

NAME_LANGUAGE = "it is read as English unless you name another with language (--language de)"
"""The advice of an import if the language is not clear."""

LANGUAGE_SAMPLE = 200
"""Number of documents that are read to guess the language."""


@dataclass(frozen=True)
class Import:
    """The tables that become a dataset, and the roles of their columns."""

    parts: tuple[Part, ...]
    ids_named: bool = False
    cell_notices: tuple[str, ...] = ()
    typed: ImportChoices = NO_CHOICES
    """The choices that were typed for this import or an earlier one."""

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
        """The language that the first documents look like; None if they are mixed or look like none that is known."""
        return guess_language(self._sample)

    @property
    def language_line(self) -> str:
        """A sentence that says which language was named or guessed, or why none was guessed."""
        if self.typed.language:
            return f"The text is read as {search_language(self.typed.language).name}"
        if guess := self.language:
            return f"The text looks {guess.name} ({guess.share:.0%} of {counted(guess.texts, 'document')})"
        sample = counted(len(self._sample), "document")
        if mixed := mixed_languages(self._sample):
            shares = ", ".join(f"{share:.0%} {name}" for name, share in mixed.items())
            return f"The languages are mixed ({shares} of {sample}): {NAME_LANGUAGE}"
        return f"Cannot tell the language from {sample}: {NAME_LANGUAGE}"

    @cached_property
    def _sample(self) -> list[str]:
        return [document["text"] for document in islice(self._catalogue.documents(), LANGUAGE_SAMPLE)]

    def write(self, folder: Path, *, update: bool = False) -> None:
        """Write the dataset folder, with a card that states the language if it is not English.

        Raises UserError if the folder exists already, or if a cell cannot be understood.

        With `update`, a folder that an import wrote is replaced. Imports into one folder wait for each other.
        """
        with exclusive(folder.parent / f".{folder.name}.lock"):
            self._write(folder, update)

    def _write(self, folder: Path, update: bool) -> None:
        earlier = require_imported(folder) if update else None
        if not earlier:
            require_new(folder, UPDATE_ADVICE)
        if self.typed.language:
            _require_language(folder / "card.toml", self.typed.language)
        changed = Counter[Kind]()
        documents, questions = self._texts("documents", changed), self._texts("questions", changed)
        # A killed import leaves a copy of the texts behind, which is removed. A folder ending in .old may be the only
        # copy left, and stays.
        with scratch_beside(folder) as scratch:
            for name, rows in (("corpus", documents), ("query", questions), ("qrels", self._qrels())):
                # A file without rows would be a fault. A missing file means that there are no rows yet.
                if (first := next(rows, None)) is not None:
                    write_atomically(scratch / f"{name}.jsonl", map(json_line, chain((first,), rows)))
            write_mark(scratch, self._choices)
            # The mark does not list the card, which belongs to the user from now on. An update keeps it.
            if card := self._card(folder):
                write_atomically(scratch / "card.toml", card.encode())
            if earlier:
                replace_folder(folder, scratch, earlier.files)
            else:
                _take_name(scratch, folder)
        sync(folder.parent)
        if self.typed.deidentify:
            self._report_changes(changed)

    def _card(self, folder: Path) -> str:
        """Return the card of a new folder; empty if it needs none. One with the name of a known dataset is like it."""
        if self.typed.language:
            language = f'languages = ["{self.typed.language}"]\n'
        elif self.language and self.language.code != ENGLISH:
            language = f'languages = ["{self.language.code}"] # guessed by r2med data import\n'
        else:
            return ""
        name = folder.resolve().name
        return (f'like = "{name}"\n' if name in cards() else "") + language

    def _report_changes(self, changed: Counter[Kind]) -> None:
        """Say in how many texts personal data was replaced, and what was not looked for."""
        log.info(
            "personal data was replaced in %s of %s and %s of %s",
            f"{changed['documents']:,}",
            counted(self.counts["documents"], "document"),
            f"{changed['questions']:,}",
            counted(self.counts["questions"], "question"),
        )
        missed = ", ".join([*not_looked_for(), OTHER_LANGUAGES])
        log.info("not looked for: %s; ids of documents and questions stay as they are", missed)

    @property
    def _choices(self) -> ImportChoices:
        """What an update uses again. If documents are numbered, no column holds their ids."""
        tables = [
            EarlierTable(
                table=str(part.table),
                kind=part.kind,
                columns={
                    role: name for role, name in part.columns.items() if role != "id" or not self._catalogue.numbered
                },
                texts=part.texts,
            )
            for part in self.parts
        ]
        return self.typed.model_copy(update={"tables": tuple(tables)})

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

    def _texts(self, kind: Kind, changed: Counter[Kind]) -> Iterator[dict[str, str]]:
        """Yield the documents or the questions. Those whose personal data is replaced are counted."""
        rows = self._catalogue.documents() if kind == "documents" else iter(self._asked.questions.values())
        for row in rows:
            cleaned = _cleaned(row) if self.typed.deidentify else row
            changed[kind] += cleaned != row
            yield cleaned

    def _qrels(self) -> Iterator[dict[str, Any]]:
        for (query, document), grade in self._judged.grades.items():
            yield {"q_id": query, "p_id": document, "score": grade}


def _cleaned(row: dict[str, str]) -> dict[str, str]:
    """Return a document or a question with placeholders in its texts. Its id stays: judgements name it."""
    return {**row, **deidentified({name: text for name, text in row.items() if name != "id"})}


def _require_language(card: Path, language: str) -> None:
    """Raise UserError if a card, which an update keeps, names another language of the documents."""
    if card.exists() and language != card_language(card.parent):
        raise UserError(f'{card} is kept by an update: write languages = ["{language}"] into it')


def card_language(folder: Path) -> str:
    """Return the language of a folder's card that texts can be analysed in; empty if it names none."""
    card = folder / "card.toml"
    languages = read_card(card, folder.name).languages[-1:] if card.exists() else ()
    return next((code for code in languages if code in search_languages()), "")


def require_new(folder: Path, remedy: str = "name another folder") -> None:
    """Raise UserError if a folder that is to be written exists already. The message ends with `remedy`."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: {remedy}")


def _take_name(scratch: Path, folder: Path) -> None:
    try:
        scratch.replace(folder)
    except OSError:
        require_new(folder, UPDATE_ADVICE)  # another import was faster
        raise


def plan_import(
    files: Sequence[Path | str],
    *,
    typed: ImportChoices = NO_CHOICES,
    earlier: ImportChoices = NO_CHOICES,
    **columns: str | Sequence[str],
) -> Import:
    """Return the planned import of these files.

    `columns` names columns by role: id, text (one or several) and title of documents; query_id, query, answer, relevant
    and grade of questions. Other columns are those of the `earlier` import, or are guessed.
    Raises UserError if a file cannot be read, or if there is no analysis for the language.
    """
    if typed.language:
        _check_language(typed.language)
    if not files:
        raise UserError("import needs files: r2med data import notes.csv questions.xlsx -o mine")
    named: Named = {role: column for role, column in columns.items() if column}
    if typed.no_grade and "grade" in named:
        raise UserError("grade (--grade) and no_grade (--no-grade) exclude each other: choose one")
    choices = earlier.replaced_by(typed)
    if "grade" in named:
        choices = choices.model_copy(update={"no_grade": False})
    elif choices.no_grade:
        named = {**named, "grade": ""}
    paths = list(dict.fromkeys(map(Path, files)))
    _check_sheets(paths, choices.sheets)
    readings = [
        TableOptions(choices.header, skip, choices.sheets, choices.encoding)
        for skip in _skipped(paths, choices.skip_rows)
    ]
    tables = [table for path, reading in zip(paths, readings, strict=True) for table in open_tables(path, reading)]
    parts = tuple(guess_parts(tables, named, choices))
    ids_named = "id" in named or any("id" in each.columns for each in earlier.tables)
    return Import(parts, ids_named, tuple(check_cells(parts, choices.keep_markup)), choices)


def _check_language(code: str) -> None:
    try:
        search_language(code)
    except UserError as error:
        raise UserError(f"language (--language {quote(code)}): {error}") from None


def _skipped(paths: Sequence[Path], skip_rows: Sequence[int] | int | None) -> Sequence[int | None]:
    if skip_rows is None or isinstance(skip_rows, int):
        return [skip_rows] * len(paths)
    if len(skip_rows) <= 1:
        return [*skip_rows, None][:1] * len(paths)
    if len(skip_rows) != len(paths):
        raise UserError(
            f"skip_rows (--skip-rows): {len(skip_rows)} numbers for {len(paths)} files: give one for all, or one each",
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
                f"sheets (--sheet {quote(sheet)}): no such sheet{nearest(sheet, names)}: "
                f"{', '.join(names) or 'no workbook'}",
            )
