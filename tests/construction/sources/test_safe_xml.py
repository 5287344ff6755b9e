"""XML is read element by element; bombs, cuts and faults end in one line with the position."""

import io

import pytest

from r2med.construction.sources import safe_xml
from r2med.construction.sources.safe_xml import xml_elements
from r2med.construction.sources.source_files import SourceError, SourceFile


def read(text):
    """Return the lines and texts of the rows of a file, and its fault."""
    body = text if isinstance(text, bytes) else text.encode()
    rows = []
    try:
        for line, element in xml_elements(SourceFile("x", "x", io.BytesIO(body)), "row"):
            rows.append((line, "".join(element.itertext()), dict(element.attrib)))
    except SourceError as fault:
        return rows, str(fault)
    return rows, ""


def test_elements_come_with_their_line_and_all_that_is_in_them():
    rows, fault = read('<rows>\n<row id="1">a<b>c</b>&lt;</row>\n<other>x</other><row>d</row></rows>')
    assert rows == [(2, "ac<", {"id": "1"}), (3, "d", {})]
    assert not fault


def test_what_stands_before_a_fault_is_read():
    rows, fault = read("<rows>\n<row>a</row>\n<row>b & c</row></rows>")
    assert [text for _, text, _ in rows] == ["a"]
    assert fault.startswith("line 3, column 9")


def test_a_file_that_was_cut_says_so():
    rows, fault = read("<rows>\n<row>a</row>\n<row>b")
    assert len(rows) == 1
    assert "line 3" in fault and "ends too early" in fault


@pytest.mark.parametrize(
    "entity", ['<!ENTITY a "aaaa">', '<!ENTITY a SYSTEM "file:///etc/passwd">', '<!ENTITY % p SYSTEM "http://x/">']
)
def test_entities_of_a_files_own_are_refused(entity):
    rows, fault = read(f"<!DOCTYPE rows [{entity}]>\n<rows><row>&a;</row></rows>")
    assert not rows
    assert "declares the entity" in fault


def test_characters_by_their_name_are_read_where_another_file_declares_them():
    rows, fault = read('<!DOCTYPE rows SYSTEM "rows.dtd">\n<rows><row>5&nbsp;&micro;g</row></rows>')
    assert [text for _, text, _ in rows] == ["5\xa0µg"]
    assert not fault


def test_elements_too_deep_or_too_large_are_refused(monkeypatch):
    assert "nested elements" in read("<row>" * 300)[1]
    monkeypatch.setattr(safe_xml, "MAX_BYTES", 1000)
    assert "larger than" in read(f"<rows><row>{'x' * 2000}</row></rows>")[1]
    monkeypatch.setattr(safe_xml, "BLOCK", 100)
    monkeypatch.setattr(safe_xml, "MAX_TAG_BYTES", 1000)
    assert "a tag is larger than" in read(f"<rows><row a='{'x' * 2000}'/></rows>")[1]
    assert not read(f"<rows>{'<row>x</row>' * 2000}</rows>")[1]


def test_wrong_encodings_name_the_position():
    assert read(b"<rows>\n<row>\xff</row></rows>")[1].startswith("line 2, column 6")
    assert read(b'<?xml version="1.0" encoding="nonsense"?><rows/>')[1]
