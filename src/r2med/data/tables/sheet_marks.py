"""Find hidden parts, formulas without values, and the size of each sheet in the XML of xlsx and ods files.

The files are parsed as a stream, so a large sheet takes no memory.
"""

from __future__ import annotations

import posixpath
import re
import xml.parsers.expat
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from r2med.foundation.core.errors import UserError

MAX_ROWS = 1_048_576
"""Maximum number of rows of a sheet in Excel."""
MAX_COLUMNS = 16_384
"""Maximum number of columns of a sheet in Excel."""
MAX_CELLS = 20_000_000
"""Maximum number of cells of a sheet, including empty cells between filled ones. The reader keeps all of them."""

_REFERENCE = re.compile(r"([A-Z]{1,7})(\d{1,18})")
_HIDDEN = ("collapse", "filter")

Attributes = dict[str, str]


@dataclass
class SheetMarks:
    """What was found in one sheet. Rows and columns are counted from 1."""

    place: str
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    formulas: list[str] = field(default_factory=list)
    """The first cells with a formula whose value was not saved."""
    formula_counts: Counter[int] = field(default_factory=Counter)
    """Column -> number of such cells."""
    rows: int = 0
    """Number of the last row with a filled cell."""
    columns: int = 0

    def fill(self, row: int, column: int) -> None:
        """Note a filled cell. Raises UserError if the sheet becomes too large."""
        self.rows, self.columns = max(self.rows, row), max(self.columns, column)
        if self.rows * self.columns > MAX_CELLS:
            many = f"more than {MAX_CELLS:,} cells"
            raise UserError(f"{self.place}, row {row}: {many}: copy the table into a new workbook, or save it as CSV")

    def lack(self, row: int, column: int) -> None:
        """Note a formula without a value."""
        self.formula_counts[column] += 1
        if len(self.formulas) < 3:
            self.formulas.append(f"{column_letters(column)}{row}")


def column_letters(number: int) -> str:
    """Return the letters of a column: 1 is A, 27 is AA."""
    letters = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def sheet_marks(path: Path, archive: zipfile.ZipFile) -> Mapping[str, SheetMarks]:
    """Return sheet name -> what was found, for an xlsx or ods file. Raises UserError if a sheet is too large."""
    names = archive.namelist()
    if "content.xml" in names:
        return _ods(path, archive)
    return {sheet: _xlsx(path, archive, sheet, part) for sheet, part in _parts(archive).items() if part in names}


def _parse(
    archive: zipfile.ZipFile,
    part: str,
    start: Callable[[str, Attributes], None],
    end: Callable[[str], None] = lambda name: None,
    text: Callable[[str], None] = lambda text: None,
) -> None:
    """Call a function for each tag of an XML file, with its name without the namespace."""
    parser = xml.parsers.expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: start(name.rpartition(":")[2], attributes)
    parser.EndElementHandler = lambda name: end(name.rpartition(":")[2])
    parser.CharacterDataHandler = text
    with archive.open(part) as file:
        while block := file.read(1 << 16):
            parser.Parse(block, False)
        parser.Parse(b"", True)


def _parts(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return sheet name -> its part of an xlsx file."""
    targets: dict[str, str] = {}
    sheets: dict[str, str] = {}

    def relation(name: str, attributes: Attributes) -> None:
        if name == "Relationship":
            targets[attributes.get("Id", "")] = posixpath.normpath(posixpath.join("/xl", attributes.get("Target", "")))

    def sheet(name: str, attributes: Attributes) -> None:
        if name == "sheet":
            sheets[attributes.get("name", "")] = next(
                (value for key, value in attributes.items() if key.rpartition(":")[2] == "id"), ""
            )

    if "xl/_rels/workbook.xml.rels" in archive.namelist() and "xl/workbook.xml" in archive.namelist():
        _parse(archive, "xl/_rels/workbook.xml.rels", relation)
        _parse(archive, "xl/workbook.xml", sheet)
    return {name: targets.get(identifier, "").lstrip("/") for name, identifier in sheets.items()}


class _XlsxSheet:
    """The state of a parser in a sheet of an xlsx file."""

    def __init__(self, marks: SheetMarks) -> None:
        self.marks = marks
        self.row = self.column = 0
        self.inside = ""
        self.has_formula = self.has_value = False

    def start(self, name: str, attributes: Attributes) -> None:
        if name == "row":
            self.row, self.column = int(attributes.get("r", self.row + 1)), 0
            if _is_true(attributes.get("hidden", "")):
                self.marks.hidden_rows.add(self.row)
        elif name == "col" and _is_true(attributes.get("hidden", "")):
            last = min(int(attributes.get("max", 0)), MAX_COLUMNS)
            self.marks.hidden_columns.update(range(int(attributes.get("min", 1)), last + 1))
        elif name == "c":
            self._place(attributes.get("r", ""))
            self.has_formula = self.has_value = False
        elif name in ("f", "v", "is"):
            self.inside = name
            self.has_formula = self.has_formula or name == "f"
            self.has_value = self.has_value or name == "is"

    def _place(self, reference: str) -> None:
        if found := _REFERENCE.fullmatch(reference):
            self.row, self.column = int(found[2]), 0
            for letter in found[1]:
                self.column = 26 * self.column + ord(letter) - ord("A") + 1
        else:
            self.column += 1

    def text(self, text: str) -> None:
        self.has_value = self.has_value or self.inside == "v"

    def end(self, name: str) -> None:
        if name == self.inside:
            self.inside = ""
        if name != "c":
            return
        if self.has_value:
            self.marks.fill(self.row, self.column)
        elif self.has_formula:
            self.marks.lack(self.row, self.column)


def _is_true(word: str) -> bool:
    return word.lower() in ("1", "true", "on")


def _xlsx(path: Path, archive: zipfile.ZipFile, sheet: str, part: str) -> SheetMarks:
    state = _XlsxSheet(SheetMarks(f"{path.name}, sheet {sheet}"))
    _parse(archive, part, state.start, state.end, state.text)
    return state.marks


class _OdsSheets:
    """The state of a parser in the sheets of an ods file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: dict[str, SheetMarks] = {}
        self.marks = SheetMarks("")
        self.row = self.column = self.rows = self.columns = self.defined = 0
        self.groups: list[bool] = []
        self.formula = self.filled = False

    def start(self, tag: str, attributes: Attributes) -> None:
        said = {name.rpartition(":")[2]: value for name, value in attributes.items()}
        if tag == "table":
            name = said.get("name", "")
            self.marks = self.found.setdefault(name, SheetMarks(f"{self.path.name}, sheet {name}"))
            self.row = self.defined = 0
        elif tag in ("table-row-group", "table-column-group"):
            self.groups.append(said.get("display") == "false")
        elif tag == "table-column":
            repeated = int(said.get("number-columns-repeated", 1))
            if self._is_hidden(said):
                last = min(self.defined + repeated, MAX_COLUMNS)
                self.marks.hidden_columns.update(range(self.defined + 1, last + 1))
            self.defined += repeated
        elif tag == "table-row":
            self.column, self.rows = 0, int(said.get("number-rows-repeated", 1))
            if self._is_hidden(said):
                last = min(self.row + self.rows, MAX_ROWS)
                self.marks.hidden_rows.update(range(self.row + 1, last + 1))
        elif tag in ("table-cell", "covered-table-cell"):
            self.columns = int(said.get("number-columns-repeated", 1))
            self.formula, self.filled = "formula" in said, "value-type" in said

    def _is_hidden(self, said: Attributes) -> bool:
        return said.get("visibility") in _HIDDEN or any(self.groups)

    def text(self, text: str) -> None:
        self.filled = self.filled or bool(text.strip())

    def end(self, tag: str) -> None:
        if tag in ("table-row-group", "table-column-group") and self.groups:
            self.groups.pop()
        elif tag == "table-row":
            self.row += self.rows
        elif tag in ("table-cell", "covered-table-cell"):
            if self.filled:
                self.marks.fill(self.row + self.rows, self.column + self.columns)
            elif self.formula:
                self.marks.lack(self.row + 1, self.column + 1)
            self.column += self.columns


def _ods(path: Path, archive: zipfile.ZipFile) -> Mapping[str, SheetMarks]:
    state = _OdsSheets(path)
    _parse(archive, "content.xml", state.start, state.end, state.text)
    return state.found
