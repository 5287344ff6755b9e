"""From the tables of a user to an R2MED folder: what they hold is guessed or told, and written whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from r2med.data.columns import Kind, Part, grade_of, graded_ids, guess_parts, id_named
from r2med.data.source_rows import HIGHEST_GRADE
from r2med.data.table_files import Cell, open_tables
from r2med.errors import UserError
from r2med.store.files import sync, write_atomically
from r2med.store.owners import process_name
from r2med.text.unicode import is_unicode


@dataclass(frozen=True)
class Import:
    """The tables of a dataset to be, and what their columns are taken for."""

    parts: tuple[Part, ...]

    @property
    def notices(self) -> list[str]:
        """What was done about the files, and which rows get ids that they did not come with."""
        lines = [notice for part in self.parts for notice in part.table.notices]
        for part in self._of("documents"):
            if "id" not in part.columns:
                named = id_named(part.table)
                why = f"column {named!r} has values that repeat or are missing" if named else "no column of ids"
                lines.append(f"{part.table}: {why}: documents are numbered in their order (--id names a column)")
        return lines

    def write(self, folder: Path) -> None:
        """Write the folder under its name. Raises UserError if it is there already, or a cell makes no sense."""
        require_new(folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = folder.with_name(f".{folder.name}.{process_name()}.tmp")
        try:
            for name, rows in (("corpus", self._documents()), ("query", self._queries()), ("qrels", self._qrels())):
                # A file without rows would be a fault; one that is not there says that there are none yet.
                if (first := next(rows, None)) is not None:
                    write_atomically(scratch / f"{name}.jsonl", map(_line, chain((first,), rows)))
            scratch.replace(folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        sync(folder.parent)

    def _of(self, kind: Kind) -> list[Part]:
        return [part for part in self.parts if part.kind == kind]

    def _documents(self) -> Iterator[dict[str, str]]:
        number = 0
        for part in self._of("documents"):
            for line, row in part.rows():
                number += 1
                identifier = (_text(row.get("id", "")).strip() or f"row-{line}") if "id" in row else str(number)
                title = _text(row.get("title", ""))
                yield {"id": identifier, **({"title": title} if title else {}), "text": _text(row["text"])}

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(row["id"] for row in self._documents())

    @cached_property
    def _questions(self) -> Mapping[tuple[Path, str, int], str]:
        """The id of the question in each row: its own, else a number; rows of one text are one question."""
        ids: dict[tuple[Path, str, int], str] = {}
        numbered: dict[str, str] = {}
        for part in self._of("questions"):
            for line, row in part.rows():
                own = _text(row.get("query_id", "")).strip()
                made = numbered.setdefault(_text(row["query"]), f"q{len(numbered) + 1}")
                ids[part.table.path, part.table.sheet, line] = own or made
        return ids

    def _queries(self) -> Iterator[dict[str, str]]:
        seen: set[tuple[str, str]] = set()
        for part in self._of("questions"):
            for line, row in part.rows():
                identifier, text = self._questions[part.table.path, part.table.sheet, line], _text(row["query"])
                if text and (identifier, text) not in seen:  # a row for each relevant document repeats the question
                    seen.add((identifier, text))
                    answer = _text(row.get("answer", ""))
                    yield {"id": identifier, "text": text, **({"answer": answer} if answer else {})}

    def _qrels(self) -> Iterator[dict[str, Any]]:
        for part in (*self._of("questions"), *self._of("judgements")):
            if "relevant" not in part.columns:
                continue
            for line, row in part.rows():
                key = (part.table.path, part.table.sheet, line)
                query = self._questions.get(key) or _text(row.get("query_id", "")).strip()
                for document, grade in self._judged(part, line, row):
                    yield {"q_id": query, "p_id": document, "score": grade}

    def _judged(self, part: Part, line: int, row: Mapping[str, Cell]) -> Iterable[tuple[str, int]]:
        """Yield the documents that a row names, with their grades: beside the id, in a column of grades, else 1."""
        pairs = graded_ids(row["relevant"], self._ids)
        cell = row.get("grade", "")
        grades = cell if isinstance(cell, list) else cell.replace(";", "|").split("|")
        if len(grades) == 1:
            grades = grades * len(pairs)
        if len(grades) != len(pairs) and pairs:
            raise UserError(f"{part.table.path}:{line}: {len(pairs)} documents and {len(grades)} grades")
        for (document, beside), word in zip(pairs, grades, strict=False):
            grade = grade_of(beside or word or "1")
            if grade is None or abs(grade) > HIGHEST_GRADE:
                column = part.columns.get("grade", "")
                raise UserError(f"{part.table.path}:{line}: {column} {word[:40]!r} is no grade: 0, 1, 2, … or yes, no")
            yield document, grade


def require_new(folder: Path) -> None:
    """Raise UserError if something is in the place of a folder that is to be written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is there already: name another folder, or remove it first")


def plan_import(files: Sequence[Path | str], *, header: bool | None = None, **columns: str) -> Import:
    """Return what an import of these files would make of them.

    `columns` names columns by what they are: id, text and title of documents; query_id, query, answer, relevant and
    grade of questions. What is not named is guessed. Raises UserError if a file cannot be read.
    """
    if not files:
        raise UserError("import needs files: r2med import notes.csv questions.xlsx -o mine")
    tables = [table for file in dict.fromkeys(map(Path, files)) for table in open_tables(file, header)]
    return Import(tuple(guess_parts(tables, {role: column for role, column in columns.items() if column})))


def _text(cell: Cell) -> str:
    return cell.strip() if isinstance(cell, str) else "\n".join(cell).strip()


def _line(row: Mapping[str, Any]) -> bytes:
    text = json.dumps(row, ensure_ascii=False)
    # A lone surrogate has no bytes in UTF-8: escaped, it is found by the check of the data.
    return (text if is_unicode(text) else json.dumps(row)).encode() + b"\n"
