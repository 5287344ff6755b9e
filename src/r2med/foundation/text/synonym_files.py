"""Read tables of synonyms: CSV and TSV, and the descriptors of MeSH as ASCII or XML, also compressed by gzip."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from r2med.foundation.core.errors import UserError

MAX_FILE_BYTES = 2 << 30
"""Maximum size of a table after unpacking. The XML of all MeSH descriptors has 0.3 GB."""

_HELP = "a table of synonyms is a CSV or TSV file with the columns concept and term, or the descriptors of MeSH"
_NOT_SYNONYMS = ("BRD", "REL")
"""MeSH's marks of entry terms that are broader than the descriptor or only related to it."""


def read_terms(path: Path) -> list[tuple[str, str]]:
    """Return the (concept, term) pairs of a table of synonyms. Raises UserError if the file is not such a table."""
    body = _body(path)
    if body.lstrip()[:1] == b"<":
        terms = _mesh_xml(path, body)
    elif body.lstrip().startswith(b"*NEWRECORD"):
        terms = list(_mesh_ascii(_decoded(path, body)))
    else:
        terms = list(_delimited(path, _decoded(path, body)))
    if not terms:
        raise UserError(f"{path}: no terms in it: {_HELP}")
    return terms


def _body(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            body = file.read(MAX_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(
            f"cannot read the table of synonyms {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if len(body) > MAX_FILE_BYTES:
        raise UserError(f"{path} is larger than {MAX_FILE_BYTES >> 30} GB: {_HELP}")
    return body.removeprefix(b"\xef\xbb\xbf")


def _decoded(path: Path, body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: not UTF-8: save the file as UTF-8") from None


def _delimited(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a CSV or TSV file. Without a header its two columns are concept and term."""
    head = text.lstrip().partition("\n")[0]
    separator = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    columns: tuple[int, int] | None = None
    try:
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            if columns is None:
                columns, is_header = _columns(path, row)
                if is_header:
                    continue
            pair = tuple(row[column].strip() if column < len(row) else "" for column in columns)
            if not all(pair):
                raise UserError(f"{path}:{rows.line_num}: a row needs a concept and a term, as in: Influenza,flu")
            yield pair[0], pair[1]
    except csv.Error as error:
        raise UserError(f"{path}:{rows.line_num}: not a valid row of a CSV file ({error}): {_HELP}") from None


def _columns(path: Path, row: list[str]) -> tuple[tuple[int, int], bool]:
    """Return the columns of concept and term by the first row, and True if this row is a header."""
    names = [cell.strip().casefold() for cell in row]
    if "concept" in names and "term" in names:
        return (names.index("concept"), names.index("term")), True
    if len(row) != 2 or "concept" in names or "term" in names:
        raise UserError(f"{path}:1: no columns concept and term in the header: {_HELP}")
    return (0, 1), False


def _mesh_ascii(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of MeSH's ASCII format: MH is the heading; ENTRY and PRINT ENTRY are its other terms."""
    heading, entries = "", list[str]()
    for line in text.splitlines():
        field, _, value = line.partition(" = ")
        if line.startswith("*NEWRECORD"):
            yield from ((heading, entry) for entry in entries if heading)
            heading, entries = "", []
        elif field == "MH":
            heading = value.strip()
            entries.append(heading)
        elif field in ("ENTRY", "PRINT ENTRY"):
            term, *marks = value.split("|")
            if term.strip() and not any(mark in _NOT_SYNONYMS for mark in marks):
                entries.append(term.strip())
    yield from ((heading, entry) for entry in entries if heading)


class _MeshXml:
    """Collects the terms of MeSH's XML format, whose root element is DescriptorRecordSet."""

    def __init__(self) -> None:
        self.terms: list[tuple[str, str]] = []
        self._path: list[str] = []
        self._heading = ""
        self._concept: list[str] = []
        self._text: list[str] = []
        self._skipped = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        self._text = []
        if name == "DescriptorRecord":
            self._heading = ""
        elif name == "Concept":
            self._concept, self._skipped = [], False
        elif name == "ConceptRelation" and attributes.get("RelationName") in _NOT_SYNONYMS:
            self._skipped = True

    def text(self, text: str) -> None:
        self._text.append(text)

    def end(self, name: str) -> None:
        value = "".join(self._text).strip()
        if self._path[-3:] == ["DescriptorRecord", "DescriptorName", "String"]:
            self._heading = value
            self.terms.append((value, value))
        elif self._path[-2:] == ["Term", "String"]:
            self._concept.append(value)
        elif name == "Concept" and self._heading and not self._skipped:
            self.terms += [(self._heading, term) for term in self._concept if term]
        self._path.pop()
        self._text = []


def _mesh_xml(path: Path, body: bytes) -> list[tuple[str, str]]:
    records = _MeshXml()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = records.start
    parser.EndElementHandler = records.end
    parser.CharacterDataHandler = records.text
    parser.EntityDeclHandler = _refuse_entity
    try:
        parser.Parse(body, True)
    except expat.ExpatError as error:
        raise UserError(f"{path}:{error.lineno}: {expat.ErrorString(error.code)}: {_HELP}") from None
    except (ValueError, LookupError) as error:
        raise UserError(f"{path}: {error}: {_HELP}") from None
    return records.terms


def _refuse_entity(name: str, *declaration: object) -> None:
    raise ValueError(f"it declares the entity {name!r}, and custom entities are not allowed")
