"""Workbooks of all kinds are read. What is hidden in them is left out and named, or a note says that it cannot be."""

from __future__ import annotations

import base64
import zipfile
import zlib
from pathlib import Path

import openpyxl
import pytest

from r2med.data.tables.importing import plan_import
from support.facts import error_states, some_states

NOTES = [("id", "note", "private"), ("n1", "A cough since May.", "phones daily"), ("n2", "An itch.", "owes money")]

OLD_WORKBOOK = zlib.decompress(
    base64.b85decode(
        """
c-
rk)O=uHA6#iy6+cdFhlbQ;xP?myKYbn%TytFZb_SDdNQAE%*U2JIGNE#3IVzuTd2%Z!#g<iZ=z4(J3^yWdR=s^&KR8Qhbu;8K1`sQU;Q_Z0PEh
_UZ^XBb)-^{$-
nK%3MayeF7xYx0QpD+XyWiNz=Dx07Z@=u~5zvoHSuN$d&8vhhRjWm%B79K}l1mzsc`Cfs6yMbpUf%jBS;v7;r*Ri({hd73`kTDFB6u3o}X0&ru
tt>Mvx3j#%%qJ`lvgInvLE@Ig2`nd4JqOe(K5lfeuNku62i)c@Tl&$4=W-
Qaye2AK3(0&oJ^gn&Is;8u1kKy9<2w2DbO~{qz(uTjHt@yI)Tg$#Z>?Q`>|Zz9gEj2ejQ}tQ?=&y)A|hBdrN^RlD>yT27~?%v7FwOz31YkCAl>
b61(J3qcmB+zJ(G1ajy;l|?USDU+kn(ZyJQ!f{8@)h1Jpy(wX=oHWM5cr;+*u+4M`v2WN0Eeffm+doDxwQe(m<>S0m%2iBoKu<A5rUgI)3p;Ng
;NL5-W)6JRO1JuLUJyv)7sWW9rBoUWAW?$I`-9GPd%74~-1I0KB=iQQHD9@2}S#vXPSKP2{&zBIgYA-
?n`v4AdmJWWu0dCa3%^opA|BpxOFTBxn#9n1D#wvk37s$%!lGp_~f2(ubvSviw;M<~9i!57Ro6kjmkRD7cb-(Y?~@hf-VQhc)p-(-
G+;+xEuQ#oX`;=b&RHo+eVLqkJDLqkJDLqp^HOT2tvG}UXnr9KCO>c7r9m9qX#^55bpa&#2v!}Ks*s`HqwYyIqiCH%g`CfoS`3nh-
x=y^<Goa30Pd;QYqoT$E@O*f4Gz7(o={Bk{U{^9Yz0lbIREd
""".replace("\n", "")
    )
)
"""An .xls file with the sheet Notes: id, note; n1, "A cough since May."; n2, "Né à terme."; n3, "An itch."."""


def workbook(path: Path, rows: list[tuple[str, ...]] = NOTES) -> openpyxl.Workbook:
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    for row in rows:
        book.active.append(row)
    book.save(path)
    return book


def ods(path: Path, content: str, mimetype: str = "application/vnd.oasis.opendocument.spreadsheet") -> Path:
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{mimetype}"/></manifest:manifest>'
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", mimetype, zipfile.ZIP_STORED)
        archive.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:spreadsheet>{content}"
            "</office:spreadsheet></office:body></office:document-content>",
        )
        archive.writestr("META-INF/manifest.xml", manifest)
    return path


def ods_row(*cells: str, row: str = "") -> str:
    inner = "".join(
        f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>' for cell in cells
    )
    return f"<table:table-row {row}>{inner}</table:table-row>"


def documents(path: Path) -> list[dict[str, str]]:
    return list(plan_import([path])._catalogue.documents())


def test_hidden_columns_and_rows_are_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / "ward.xlsx"
    book = workbook(path, [*NOTES, ("n3", "A filtered note.", "x")])
    book.active.column_dimensions["C"].hidden = True
    book.active.row_dimensions[4].hidden = True
    book.save(path)
    assert documents(path) == [{"id": "n1", "text": "A cough since May."}, {"id": "n2", "text": "An itch."}]
    notices = plan_import([path]).notices
    some_states(notices, "ward.xlsx", "sheet Notes", "hidden columns", "C 'private'")
    some_states(notices, "ward.xlsx", "sheet Notes", "hidden rows", 4)


def test_hidden_parts_of_an_ods_file_are_left_out_too(tmp_path: Path) -> None:
    hidden = 'table:visibility="collapse"'
    columns = f'<table:table-column table:number-columns-repeated="2"/><table:table-column {hidden}/>'
    group = f'<table:table-row-group table:display="false">{ods_row("n4", "In a group.")}</table:table-row-group>'
    rows = [ods_row(*row) for row in NOTES]
    filtered = ods_row("n3", "A filtered note.", row='table:visibility="filter"')
    path = ods(
        tmp_path / "ward.ods",
        f'<table:table table:name="Notes">{columns}{"".join(rows)}{filtered}{group}</table:table>',
    )
    assert documents(path) == [{"id": "n1", "text": "A cough since May."}, {"id": "n2", "text": "An itch."}]
    notices = plan_import([path]).notices
    some_states(notices, "hidden columns", "C 'private'")
    some_states(notices, "hidden rows", "4, 5")


def test_an_old_workbook_is_read_with_a_note_that_hidden_parts_are_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "old.xls").write_bytes(OLD_WORKBOOK)
    assert documents(tmp_path / "old.xls")[1] == {"id": "n2", "text": "Né à terme."}
    some_states(plan_import([tmp_path / "old.xls"]).notices, "old.xls", "hidden", ".xlsx")


def test_formulas_without_values_are_named_or_stop_the_import(tmp_path: Path) -> None:
    path = tmp_path / "ward.xlsx"
    workbook(path, [("id", "note"), *((f"n{n}", f"A cough for {n} weeks.") for n in range(1, 6)), ("=A2", "An itch.")])
    some_states(plan_import([path]).notices, 1, "formula", "A7")
    workbook(path, [("id", "note"), ("n1", '="A cough"'), ("n2", '="An itch"')])
    with error_states("sheet Notes", "column B", "2 formulas"):
        plan_import([path])


def test_a_sheet_of_too_many_cells_is_refused(tmp_path: Path) -> None:
    cell = '<table:table-cell table:number-columns-repeated="1000" office:value-type="string"><text:p>x</text:p>'
    row = f'<table:table-row table:number-rows-repeated="900000">{cell}</table:table-cell></table:table-row>'
    path = ods(tmp_path / "wide.ods", f'<table:table table:name="A">{row}</table:table>')
    with error_states("wide.ods", "sheet A", "row 900000", 20_000_000):
        plan_import([path])


def test_a_workbook_with_a_password_is_named_so(tmp_path: Path) -> None:
    name, locked = "Workbook".encode("utf-16-le"), "EncryptedPackage".encode("utf-16-le")
    at = OLD_WORKBOOK.index(name)  # an encrypted .xlsx is such a file, too: it has this name in its directory
    entry = locked.ljust(64, b"\0") + (len(locked) + 2).to_bytes(2, "little")
    (tmp_path / "locked.xlsx").write_bytes(OLD_WORKBOOK[:at] + entry + OLD_WORKBOOK[at + len(entry) :])
    with error_states("locked.xlsx", "password"):
        plan_import([tmp_path / "locked.xlsx"])


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        ("a.csv", OLD_WORKBOOK, ["no text", "CSV"]),
        ("a.xlsx", b"id,text\na,A cough.\n", ["workbook", "CSV"]),
        ("a.xls", b"<html><table><tr><td>id", ["HTML", ".xls", ".csv"]),
        ("a.csv", b"\xef\xbb\xbf<!DOCTYPE html>\n<html>", ["HTML", ".csv"]),
        ("a.csv", b"{\\rtf1 A cough.}", ["RTF", ".csv"]),
        ("a.jsonl.gz", b"\x1f\x8b\x08", [".jsonl", "save it"]),
    ],
)
def test_a_file_that_is_no_table_is_named_in_one_line(
    tmp_path: Path, name: str, content: bytes, facts: list[str]
) -> None:
    (tmp_path / name).write_bytes(content)
    with error_states(name, *facts):
        plan_import([tmp_path / name])
