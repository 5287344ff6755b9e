"""A table says the same in Markdown, LaTeX and CSV, and no name in it is markup."""

from __future__ import annotations

import csv
import io
import re

from r2med.comparison.paper_table import Entry, PaperTable

HOSTILE = r"[a]_b|<script>*&%$#{}~^\ → x × α ≈"
TABLE = PaperTable(
    ("System", "Bio_1", "Avg"),
    (
        (Entry(HOSTILE), Entry("12.35", 12.3456, bold=True, mark="†"), Entry("1.00", 1.0)),
        (Entry("*star, comma"), Entry("11.00", 11.0, underlined=True), Entry("–")),
    ),
    "A caption with 95 % & more.",
)


def test_markdown_has_bold_underlined_and_marked_figures_and_escapes_names() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[1] == "| :-- | --: | --: |"
    assert "| **12.35**† | 1.00 |" in lines[2]
    assert "<u>11.00</u>" in lines[3]
    assert "<script>" not in lines[2]
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines[:4])


def test_latex_escapes_what_latex_would_read() -> None:
    text = TABLE.latex()
    assert r"\textbf{12.35}\textsuperscript{$\dagger$} & 1.00 \\" in text
    assert r"\underline{11.00}" in text
    assert r"A caption with 95 \% \& more." in text
    assert r"{[}a]\_b\textbar{}$<$script$>${*}\&\%\$\#\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text
    assert "\n[" not in text and "\n*" not in text


def test_csv_has_figures_to_their_last_digit() -> None:
    rows = list(csv.reader(io.StringIO(TABLE.csv())))
    assert rows == [["System", "Bio_1", "Avg"], [HOSTILE, "12.3456", "1.0"], ["*star, comma", "11.0", "–"]]
