"""Recognise files whose contents are not what their names say: a workbook named .csv, a web page named .xls."""

from __future__ import annotations

import re
from pathlib import Path

from r2med.data.tables.workbooks import WORKBOOKS
from r2med.foundation.core.errors import UserError

HEAD_BYTES = 1 << 16
"""Number of bytes at the start of a file that are looked at."""

_TEXT = (".csv", ".tsv", ".txt")
_OLD_WORKBOOK = b"\xd0\xcf\x11\xe0"
_PAGE = re.compile(rb"\s*(<!doctype html|<html|<head|<body|<table|<div|<meta|<style)", re.IGNORECASE)
_JSON = re.compile(rb'\s*(\{\s*"|\[\s*[\[{])')


def check_content(path: Path) -> None:
    """Raise UserError if the contents of a file do not fit the ending of its name."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    suffix = path.suffix.lower()
    if fault := _fault(head.removeprefix(b"\xef\xbb\xbf"), suffix) if head else "":
        raise UserError(f"{path}: ", fault)


def _fault(head: bytes, suffix: str) -> str:
    """Return what is wrong with a file and how to mend it; empty if nothing is."""
    if suffix in (*_TEXT, *WORKBOOKS):
        if _PAGE.match(head):
            return f"it holds HTML, not {suffix}: open it in a spreadsheet and save it as .csv"
        if head.startswith(b"{\\rtf"):
            return f"it holds RTF, not {suffix}: open it in a text program and save its table as .csv"
        if head.startswith(b"%PDF"):
            return f"it holds a PDF, not {suffix}: export the table itself"
    if suffix in _TEXT and head.startswith(b"#FORMAT=WebAnno"):
        return "it holds marked words (INCEpTION or WebAnno), not a table: write a row for each text, with its label"
    if head.startswith(b"\x1f\x8b") and suffix != ".parquet":
        return "it is compressed (gzip): unpack it"
    archive = _archive(head)
    if suffix in _TEXT:
        held = archive or (".parquet" if head.startswith(b"PAR1") else ".json or .jsonl" if _JSON.match(head) else "")
        return f"its contents are those of {held}, not {suffix}: rename it" if held else ""
    if suffix not in WORKBOOKS:
        return f"its contents are those of {archive}, not {suffix}: rename it" if archive else ""
    if head.startswith(_OLD_WORKBOOK) and "EncryptedPackage".encode("utf-16-le") in head:
        return "the workbook has a password: save it without one"
    if not archive and b"\0" not in head and len(head) > 1:
        return f"it holds text, not a workbook: rename it to .csv, or save it again as {suffix}"
    fits = not archive or archive == suffix or {archive, suffix} == {".xlsx", ".xlsm"}
    return "" if fits else f"its contents are those of {archive}, not {suffix}: rename it"


def _archive(head: bytes) -> str:
    """Return the usual ending of a file that is a workbook, such as .xlsx; an empty text for any other file."""
    if head.startswith(_OLD_WORKBOOK):
        return ".xls"
    if not head.startswith(b"PK\x03\x04"):
        return ""
    if b"opendocument.spreadsheet" in head[:200]:
        return ".ods"
    return ".xlsb" if b"xl/workbook.bin" in head else ".xlsx"
