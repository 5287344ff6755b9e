"""HTML pages: no script, nothing of the data is markup, and only the page's own style is allowed."""

import re

from r2med.foundation.pages.cells import Estimate
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Dots, Page, Section, Table

HOSTILE = '"><script>alert(1)</script>&\u202e'
ESTIMATE = Estimate(0.5, 0.25, 0.75)


def page(rows: int = 1, has_files: bool = True) -> Page:
    dots = Dots([(HOSTILE, {HOSTILE: ESTIMATE})], HOSTILE)
    table = Table.of((HOSTILE, "estimate"), [(HOSTILE, ESTIMATE)] * rows, HOSTILE, HOSTILE, "estimates", chart=dots)
    section = Section(HOSTILE, [table, Table.of_counts(HOSTILE, [(HOSTILE, 1)])], HOSTILE, [HOSTILE], "name")
    return Page(HOSTILE, [section], HOSTILE, [(HOSTILE, HOSTILE, HOSTILE)], about=HOSTILE, has_files=has_files)


def test_nothing_of_the_data_is_markup() -> None:
    html = page_html(page())
    assert "<script" not in html
    assert "\u202e" not in html
    assert html.count("&lt;script&gt;") >= 8


def test_the_policy_allows_the_style_of_the_page_and_nothing_else() -> None:
    html = page_html(page())
    assert re.search(r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'", html)
    assert " style=" not in html
    assert "http" not in html.replace("http-equiv", "")


def test_a_long_table_with_a_file_is_cut_and_links_to_the_file() -> None:
    html = page_html(page(100))
    assert html.count('<td class="num">0.50') == 60
    assert '40 more rows in <a href="estimates.csv">' in html


def test_a_table_without_a_file_is_whole() -> None:
    html = page_html(page(100, has_files=False))
    assert html.count('<td class="num">0.50') == 100
    assert ".csv" not in html


def test_an_estimate_without_an_interval_has_no_bounds() -> None:
    alone = Table.of(("name", "estimate"), [("a", Estimate(0.5))])
    html = page_html(Page("t", [Section("", [alone])]))
    assert "0.50" in html
    assert "0.50 to" not in html


def test_a_hash_is_set_as_one() -> None:
    html = page_html(Page("t", [Section("", [Table.of(("sha",), [("0" * 64,)])])]))
    assert '<td class="hash">' in html
