"""The page of analyses: no script, and nothing of the data is markup."""

import re

from r2med.analysis.findings import Section, Table
from r2med.analysis.html_report import page
from r2med.analysis.svg_charts import curves, dots
from r2med.comparison.comparison import Interval

HOSTILE = '"><script>alert(1)</script>&\u202e'
FIGURE = Interval(0.5, 0.25, 0.75)


def section(rows: int = 1) -> Section:
    charts = dots([(HOSTILE, {HOSTILE: FIGURE})], HOSTILE) + curves({HOSTILE: [(1.0, FIGURE)]}, HOSTILE, HOSTILE)
    table = Table("figures", HOSTILE, (HOSTILE, "figure"), [(HOSTILE, FIGURE)] * rows, HOSTILE, chart=charts)
    return Section("name", HOSTILE, HOSTILE, [table], [HOSTILE])


def test_nothing_of_the_data_is_markup() -> None:
    html = page([section()], HOSTILE)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 8


def test_the_policy_allows_the_style_of_the_page_and_nothing_else() -> None:
    html = page([section()], "")
    assert re.search(r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/=]+'", html)
    assert " style=" not in html
    assert "http" not in html.replace("http-equiv", "")


def test_a_long_table_is_cut_on_the_page_and_says_where_the_rest_is() -> None:
    html = page([section(100)], "")
    assert html.count("<tr>") == 61
    assert "40 more rows in" in html


def test_a_figure_with_its_interval_takes_three_columns_of_the_csv() -> None:
    table = Table("figures", "", ("name", "figure"), [("a", FIGURE), ("b", None)])
    assert table.csv() == "name,figure,figure low,figure high\na,0.5,0.25,0.75\nb,,,\n"


def test_a_figure_over_one_query_has_no_interval() -> None:
    alone = Table("figures", "", ("name", "figure"), [("a", Interval(0.5))])
    html = page([Section("name", "", "", [alone])], "")
    assert "0.50" in html
    assert "0.50 to" not in html
