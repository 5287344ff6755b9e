"""`compare(out=…)`: the table of a paper with its marks, and a figure that says what the records say."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree

import pytest

from r2med import compare
from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.report_tables import score_table
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.text_formats import table_csv
from support.records import collection, records, write_records

SYSTEMS = {"weak": 0.3, "twin": 0.3, "strong": 0.5}
MADE = records(SYSTEMS, {"Biology": 40, "PMC-Clinical": 25})


def test_a_report_is_tables_in_every_format_and_a_figure_of_the_scores(tmp_path: Path) -> None:
    results = write_records(MADE, tmp_path / "results")
    written = compare(results, out=tmp_path / "report", resamples=100)
    assert {path.name for path in written.files} == {
        *(f"{table}.{suffix}" for table in ("table", "pairs") for suffix in ("md", "tex", "csv")),
        "scores.svg",
    }
    assert all(path.stat().st_size for path in written.files)


def test_the_figure_has_a_dot_and_the_whole_name_of_each_system_and_equal_records_give_equal_bytes(
    tmp_path: Path,
) -> None:
    hostile = "$x$<script>&\x00\u202e " + "long → " * 30
    results = write_records(records({hostile: 0.3, "b": 0.5}, {"Biology": 40}), tmp_path / "results")
    one, other = (
        next(path for path in compare(results, out=tmp_path / name, resamples=10).files if path.suffix == ".svg")
        for name in ("one", "other")
    )
    assert one.read_bytes() == other.read_bytes()
    drawn = [(part.tag.rpartition("}")[2], part.text or "") for part in ElementTree.fromstring(one.read_bytes()).iter()]
    assert [tag for tag, _ in drawn].count("circle") == 3, "one of them is the legend"
    assert "script" not in {tag for tag, _ in drawn}
    texts = [text for tag, text in drawn if tag == "text"]
    assert "b" in texts and hostile.replace("\x00", "\ufffd").replace("\u202e", "\ufffd") in texts
    assert "nDCG@10 × 100" in texts and "mean of 1 dataset, with its 95 % interval" in texts


def test_the_best_is_bold_the_second_underlined_and_marks_tell_what_is_real() -> None:
    table = score_table(comparison(collection(MADE), resamples=999))
    assert table.heads == ("System", "Bio", "PMC", "Avg")
    first, second, third = table.rows
    assert first[0] == "strong"
    assert all(entry.bold and not entry.mark for entry in first[1:])
    assert second[-1].underlined and not third[-1].underlined
    assert {entry.mark for entry in second[1:]} == {""}  # all of them differ from the best
    table = score_table(comparison(collection(MADE), baseline="twin", resamples=999))
    assert [[entry.mark for entry in row[1:]] for row in table.rows if row[0] == "strong"] == [["†", "†", "†"]]
    assert "† differs from twin" in table.note
    twins = records({"one": 0.3, "other": 0.3}, {"Biology": 40})
    assert score_table(comparison(collection(twins), resamples=99)).rows[1][-1].mark == "≈"


def test_csv_holds_the_means_of_the_records() -> None:
    table = table_csv(score_table(comparison(collection(MADE), resamples=10)))
    rows = {row["System"]: row for row in csv.DictReader(io.StringIO(table))}
    for each in MADE:
        head = {"Biology": "Bio", "PMC-Clinical": "PMC"}[each.dataset.name]
        assert float(rows[each.system][head]) == pytest.approx(100 * each.mean["nDCG@10"])


def test_what_cannot_be_reported_is_one_line(tmp_path: Path) -> None:
    results = write_records(MADE, tmp_path / "results")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another folder"):
        compare(results, out=tmp_path / "file", resamples=10)
