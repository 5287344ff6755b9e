"""Saved web pages give their main text, title and address, whatever was done to them."""

import pytest

from r2med.construction.items import Rejected, SourcePage
from r2med.construction.sources import web_pages
from r2med.construction.sources.source_files import SourceError
from r2med.construction.sources.web_pages import ReadWeb, decoded
from r2med.construction.step import StepWork, Streams
from r2med.foundation.runtime.runtime import Runtime

PARAGRAPH = "<p>Listeria causes meningitis in newborns and in the old, and is treated with ampicillin for weeks.</p>"


def page(body=PARAGRAPH * 5, head="<title>Listeria</title>"):
    menu = "<nav><a href='/'>Menu entry</a></nav>"
    return f"<html><head>{head}</head><body>{menu}<article>{body}</article></body></html>"


@pytest.fixture
def read(tmp_path, store):
    def run(files):
        for name, content in files.items():
            (tmp_path / "web" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "web" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        items = list(ReadWeb(path="web").run(Streams({}, tmp_path), StepWork(Runtime(store=store))))
        pages = {each.id: each for each in items if isinstance(each, SourcePage)}
        return pages, [each for each in items if isinstance(each, Rejected)]

    return run


def test_the_main_text_is_read_without_menus(read):
    pages, faults = read({"a.html": page()})
    assert pages["a"].title == "Listeria"
    assert "ampicillin for weeks." in pages["a"].text
    assert "Menu" not in pages["a"].text
    assert not faults


def test_the_address_is_what_the_page_says_or_where_it_was_saved(read):
    pages, _ = read(
        {
            "a.html": page(head='<link rel="canonical" href="https://x.org/a">'),
            "b.html": "<!-- saved from url=(0019)https://x.org/b -->" + page(),
            "x.org/c.html": page(),
            "d.html": page(),
        }
    )
    assert {name: each.url for name, each in pages.items()} == {
        "a": "https://x.org/a",
        "b": "https://x.org/b",
        "x.org/c": "https://x.org/c.html",
        "d": "",
    }


def test_bombs_and_broken_pages_do_not_stop_the_others(read, monkeypatch):
    monkeypatch.setattr(web_pages, "MAX_TAGS", 30_000)
    pages, faults = read(
        {
            "deep.html": "<html><body>" + "<div>" * 20_000 + PARAGRAPH,
            "many.html": "<b>" * 40_000,
            "entities.html": "<!DOCTYPE x [<!ENTITY a 'aaa'><!ENTITY b '&a;&a;'>]><html><body><p>&b;",
            "empty.html": "",
            "bytes.html": bytes(range(256)) * 20,
            "xml.html": '<?xml version="1.0" encoding="utf-8"?>' + page(),
            "z.html": page(),
        }
    )
    assert {"xml", "z"} <= set(pages)
    assert any("more than 30,000 tags" in fault.note for fault in faults)
    assert any("byte" in fault.note for fault in faults)


@pytest.mark.parametrize(
    "body",
    [
        "<meta charset=windows-1251>йод".encode("windows-1251"),
        "<meta http-equiv='x' content='text/html; charset=windows-1251'>йод".encode("windows-1251"),
        "йод".encode("utf-8-sig"),
        b"\xff\xfe" + "йод".encode("utf-16-le"),
        "йод".encode(),
        "<meta charset=nonsense>йод".encode(),
        "<meta charset=ascii>йод".encode(),
        b"<meta charset=utf-8>" + b"\xff" + b" " * 200 + "йод".encode(),
    ],
)
def test_encodings_are_told_by_mark_or_declaration(body):
    assert decoded(body).endswith("йод")


def test_what_declares_nothing_and_is_not_utf8_is_read_as_the_web_does():
    assert decoded(b"na\xefve") == "naïve"
    with pytest.raises(SourceError, match="byte 3"):
        decoded(b"na\x81ve")
