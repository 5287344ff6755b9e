"""A page says the same in every format, and nothing of the data is markup in any of them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping

import pytest
from rich.console import Console

from r2med.foundation.pages.cells import Column, Estimate, Kind, Marked, Value, shown
from r2med.foundation.pages.html import page_html
from r2med.foundation.pages.page import Bullets, Dots, Page, Paragraph, Section, Table, Verbatim
from r2med.foundation.pages.terminal import print_page
from r2med.foundation.pages.text_formats import (
    csv_rows,
    page_csv,
    page_latex,
    page_markdown,
    page_value,
    table_csv,
    table_latex,
    table_markdown,
)

HOSTILE = r"[a]_b|<script>*&%$#{}~^\ → x × α ≈"
PAPER = Table(
    (Column("System"), Column("Bio_1", "score"), Column("Avg", "score")),
    (
        (HOSTILE, Marked(12.3456, bold=True, mark="†"), 1.0),
        ("*star, comma", Marked(11.0, underlined=True), None),
    ),
    "A caption with 95 % & more.",
)
ESTIMATE = Estimate(0.5, 0.25, 0.75)
ESTIMATES = Table((Column("name"), Column("share", "share", 0)), [("a", ESTIMATE), ("b", None)], name="shares")
EVERYTHING = Page(
    HOSTILE,
    [
        Section(
            HOSTILE,
            [
                HOSTILE,
                Paragraph(HOSTILE, "strong"),
                Bullets([HOSTILE]),
                Verbatim(HOSTILE, HOSTILE),
                Paragraph(HOSTILE * 2, label=HOSTILE, marks=[(0, len(HOSTILE), "query")]),
                PAPER,
                ESTIMATES,
                Table.of_counts(HOSTILE, [(HOSTILE, 3)]),
                Table.of((HOSTILE,), [(HOSTILE,)], chart=Dots([(HOSTILE, {HOSTILE: ESTIMATE})], HOSTILE)),
            ],
            lead=HOSTILE,
            notes=[HOSTILE],
            aside=HOSTILE,
        )
    ],
    HOSTILE,
    [(HOSTILE, HOSTILE, HOSTILE)],
    HOSTILE,
)

RENDERERS: Mapping[str, Callable[[Page], str]] = {
    "markdown": page_markdown,
    "latex": page_latex,
    "csv": page_csv,
    "json": lambda page: json.dumps(page_value(page), ensure_ascii=False),
    "html": page_html,
}


def printed(page: Page, width: int = 100) -> str:
    out = io.StringIO()
    print_page(page, Console(file=out, width=width))
    return out.getvalue()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("text", "a", "a"),
        ("integer", 12345, "12,345"),
        ("number", 1.234, "1.23"),
        ("number", 1234, "1,234"),
        ("score", 45.678, "45.68"),
        ("difference", -1.5, "−1.50"),
        ("difference", 1e-9, "0.00"),
        ("share", 0.1234, "12.34%"),
        ("p", 0.0001, "< 0.001"),
        ("p", 0.0123, "0.012"),
        ("seconds", 0.012345, "0.0123"),
        ("seconds", 12345.6, "12,346"),
        ("dollars", 1.005, "1.00"),
        ("dollars", 0, "0.00"),
        ("dollars", 0.05, "0.05"),
        ("dollars", 0.0123, "0.012"),
        ("dollars", 0.000123, "0.00012"),
        ("dollars", 0.00000104, "0.000001"),
        ("dollars", 0.0996, "0.10"),
        ("dollars", "unknown", "unknown"),
        ("score", None, "–"),
        ("score", ESTIMATE, "0.50"),
    ],
)
def test_each_kind_of_column_is_written_in_its_own_way(kind: Kind, value: Value, text: str) -> None:
    assert shown(value, Column("x", kind)) == text


def test_markdown_has_bold_underlined_and_marked_cells_and_escapes_names() -> None:
    lines = table_markdown(PAPER).splitlines()
    assert lines[1] == "| :-- | --: | --: |"
    assert "| **12.35**† | 1.00 |" in lines[2]
    assert "<u>11.00</u>" in lines[3]
    assert "<script>" not in lines[2]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines[:4])


def test_latex_escapes_what_latex_would_read() -> None:
    text = table_latex(PAPER)
    assert r"\textbf{12.35}\textsuperscript{$\dagger$} & 1.00 \\" in text
    assert r"\underline{11.00}" in text
    assert r"A caption with 95 \% \& more." in text
    assert r"{[}a]\_b\textbar{}$<$script$>${*}\&\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert "\n[" not in text and "\n*" not in text


def test_csv_has_numbers_to_their_last_digit() -> None:
    rows = list(csv.reader(io.StringIO(table_csv(PAPER))))
    assert rows == [["System", "Bio_1", "Avg"], [HOSTILE, "12.3456", "1.0"], ["*star, comma", "11.0", ""]]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_a_text_that_begins_like_a_formula_is_guarded(start: str) -> None:
    text = f"{start}HYPERLINK(1)"
    table = Table.of(("name", text), [(Marked(text), -1.5)])
    assert table_csv(table) == f"name,'{text}\n'{text},-1.5\n"
    assert csv_rows([[text, -1.5]]) == f"'{text},-1.5\n"


def test_an_estimate_takes_three_columns_of_csv_and_two_of_text() -> None:
    assert table_csv(ESTIMATES) == "name,share,share low,share high\na,0.5,0.25,0.75\nb,,,\n"
    assert table_markdown(ESTIMATES).splitlines()[2:4] == ["| a | 50% | 25% to 75% |", "| b | – | – |"]
    assert str(ESTIMATES).splitlines() == [
        "name  share        95 %",
        "a       50%  25% to 75%",
        "b         –           –",
    ]


def test_json_has_the_kind_of_each_column_and_exact_values() -> None:
    value = page_value(Page("t", [Section("", [ESTIMATES])]))
    assert value["sections"][0]["tables"] == [
        {
            "name": "shares",
            "columns": [{"head": "name", "kind": "text"}, {"head": "share", "kind": "share"}],
            "rows": [["a", {"value": 0.5, "low": 0.25, "high": 0.75}], ["b", None]],
        }
    ]


@pytest.mark.parametrize("form", RENDERERS)
def test_nothing_of_the_data_is_markup_in_any_format(form: str) -> None:
    text = RENDERERS[form](EVERYTHING)
    assert "a]" in text or "a\\]" in text
    if form == "html":
        assert "<script" not in text
    if form == "latex":
        assert not re.search(r"(?<!\\)[&%#_](?! )", text.replace("\\begin{tabular}", "").replace("% \\usepackage", ""))
    if form == "markdown":
        # An indented block is code: nothing in it is read.
        assert not [line for line in text.splitlines() if "<script>" in line and not line.startswith("    ")]


def test_a_terminal_shows_every_part_once() -> None:
    text = printed(EVERYTHING, 400)
    assert text.count("12.35†") == 1
    assert text.count("25% to 75%") == 1
    assert text.count(f"Note: {HOSTILE}") == 1


def test_a_column_is_numeric_where_no_cell_is_a_text() -> None:
    table = Table.of(("name", "count", "mixed", "empty"), [("a", 1, 2, None), ("b", ESTIMATE, "none", None)])
    assert [column.kind for column in table.columns] == ["text", "number", "text", "number"]


def test_a_notebook_shows_tables_as_plain_html() -> None:
    table = Table.of(("<b>", "n"), [("<i>", 1)], "a & b")
    html = "<table><caption>a &amp; b</caption><thead><tr><th>&lt;b&gt;</th><th>n</th></tr></thead>"
    html += "<tbody><tr><td>&lt;i&gt;</td><td>1</td></tr></tbody></table>"
    assert table._repr_html_() == html
    page = Page("t", [Section("s", ["said", table])])
    assert page._repr_html_() == f"<h3>t</h3><h4>s</h4>{html}<p>said</p>"
