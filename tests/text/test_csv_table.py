"""CSV that no spreadsheet runs."""

import pytest

from r2med.comparison.paper_table import Entry, PaperTable
from r2med.pages.page import Table
from r2med.text.csv_table import csv_table


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_a_text_that_begins_like_a_formula_is_guarded_in_every_table(start):
    text = f"{start}HYPERLINK(1)"
    for written in (
        csv_table([[text, -1.5]]),
        Table("t", "", ("name", "figure"), [(text, -1.5)]).csv(),
        PaperTable(("name", "figure"), [[Entry(text), Entry("−1.50", -1.5)]]).csv(),
    ):
        assert written.splitlines()[-1] == f"'{text},-1.5"
