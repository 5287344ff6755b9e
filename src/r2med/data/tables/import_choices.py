"""What an import was told, and the columns that it read. They stay with the dataset, and an update uses them again."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from r2med.data.tables.table import Kind, SourceTable


class EarlierTable(BaseModel):
    """A table of an earlier import: its name, its kind and its columns by role. `texts` are all columns of the text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    kind: Kind
    columns: Mapping[str, str]
    texts: tuple[str, ...] = ()

    @property
    def named(self) -> dict[str, str | Sequence[str]]:
        """The columns as a user names them."""
        return {**self.columns, **({"text": self.texts} if self.texts else {})}

    def missing(self, table: SourceTable) -> list[str]:
        """Return the columns that a table lacks."""
        used = dict.fromkeys((*self.columns.values(), *self.texts))
        return [column for column in used if column not in table.columns]


class ImportChoices(BaseModel):
    """The choices of an import. An update replaces only those that it names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    header: bool | None = None
    """True if the first row holds column names. None: it is detected."""
    skip_rows: int | tuple[int, ...] | None = None
    """The number of rows above the column names, for all files or for each. None: it is detected."""
    sheets: tuple[str, ...] = ()
    """The sheets of workbooks to read. Without any, all are read."""
    encoding: str = ""
    """The encoding of CSV and similar files that are not UTF-8."""
    language: str = ""
    """The code of the language of the documents. Without one, it is guessed."""
    keep_markup: bool = False
    """True if texts of HTML or RTF are taken as they are."""
    no_grade: bool = False
    """True if no column holds grades, so that every document that is named is relevant."""
    deidentify: bool = False
    """True if personal data in texts is replaced by placeholders."""
    tables: tuple[EarlierTable, ...] = ()
    """The tables as they were read."""

    def replaced_by(self, typed: ImportChoices) -> ImportChoices:
        """Return the choices with those that were typed."""
        return self.model_copy(update={name: getattr(typed, name) for name in typed.model_dump(exclude_defaults=True)})

    def same_table(self, table: SourceTable) -> EarlierTable | None:
        """Return the table of this name in the earlier import, if all its columns are still there."""
        return next((each for each in self.tables if each.table == str(table) and not each.missing(table)), None)

    def like(self, table: SourceTable, kind: Kind) -> EarlierTable | None:
        """Return the earlier table of this kind whose columns a table has: that of the same name, or the widest."""
        fitting = [each for each in self.tables if each.kind == kind and not each.missing(table)]
        return max(fitting, key=lambda each: (each.table == str(table), len(each.columns)), default=None)

    def changed_table(self, table: SourceTable, kind: Kind) -> Iterator[str]:
        """Yield a notice if a table lacks columns of the earlier import, so that its columns are guessed."""
        earlier = [each for each in self.tables if each.kind == kind]
        if earlier and not self.like(table, kind):
            missing = min((each.missing(table) for each in earlier), key=len)
            columns = ", ".join(map(repr, missing))
            yield f"{table}: no column {columns}, which the earlier import read: the columns are guessed anew"

    @property
    def words(self) -> str:
        """The choices as flags of the command."""
        return shlex.join(self._words())

    def _words(self) -> Iterator[str]:
        pairs = ((role, column) for each in self.tables for role, column in each.named.items())
        for role, columns in dict.fromkeys(pairs):
            for column in (columns,) if isinstance(columns, str) else columns:
                yield from (f"--{role.replace('_', '-')}", column)
        if self.header is not None:
            yield "--header" if self.header else "--no-header"
        for skipped in (self.skip_rows,) if isinstance(self.skip_rows, int) else self.skip_rows or ():
            yield from ("--skip-rows", str(skipped))
        for sheet in self.sheets:
            yield from ("--sheet", sheet)
        if self.encoding:
            yield from ("--encoding", self.encoding)
        if self.language:
            yield from ("--language", self.language)
        flags = ("--keep-markup", "--no-grade", "--deidentify")
        yield from (flag for flag in flags if getattr(self, flag[2:].replace("-", "_")))


NO_CHOICES = ImportChoices()
"""Nothing was named, so everything is guessed."""
