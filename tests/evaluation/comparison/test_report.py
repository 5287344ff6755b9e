"""`compare(out=…)`: the table of a paper with its marks, and figures that say what the records say."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from r2med import compare
from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.report import _cost_figures
from r2med.evaluation.comparison.report_tables import score_table
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.installation import install_extra
from r2med.foundation.pages.csv_text import table_csv
from support.records import collection, records, write_records

SYSTEMS = {"weak": 0.3, "twin": 0.3, "strong": 0.5}
MADE = records(SYSTEMS, {"Biology": 40, "PMC-Clinical": 25})


def with_ranks(made: Record, **ranks: int) -> Record:
    stage = made.stages[0].model_copy(update={"gold": {"q0": ranks} if ranks else {}})
    return made.model_copy(update={"stages": (stage,)})


def test_a_report_is_tables_and_figures_in_every_format(tmp_path: Path) -> None:
    results = write_records(MADE, tmp_path / "results")
    written = compare(results, out=tmp_path / "report", resamples=100)
    names = {path.name for path in written.files}
    assert names == {
        *(f"{table}.{suffix}" for table in ("table", "pairs") for suffix in ("md", "tex", "csv")),
        *(
            f"{figure}.{suffix}"
            for figure in ("bars", "heat-map", "cost-p95", "cost-dollars", "body-systems")
            for suffix in ("svg", "png")
        ),
    }
    assert all(path.stat().st_size for path in written.files)
    assert [notice.partition(":")[0] for notice in written.notices] == ["no figure cost-tokens"]


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
    with pytest.raises(UserError, match="did you mean twin"):
        compare(results, between=("twni", "weak"), resamples=10, out=tmp_path / "report")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another folder"):
        compare(results, out=tmp_path / "file", resamples=10)


def test_figures_that_the_records_do_not_allow_are_told(tmp_path: Path) -> None:
    bare = [with_ranks(each).model_copy(update={"queries": {}}) for each in MADE]
    written = compare(write_records(bare, tmp_path / "results"), out=tmp_path / "report", resamples=10)
    assert [notice.partition(":")[0] for notice in written.notices] == [
        "no figure cost-tokens",
        "no figure body-systems",
    ]


def test_systems_with_recorded_texts_are_not_in_the_figures_of_cost() -> None:
    recorded = {"expand": {"stage": "hyde", "source": "recorded"}}
    made = [each.model_copy(update={"settings": recorded}) if each.system == "strong" else each for each in MADE]
    known = collection(made)
    figures = _cost_figures(known, comparison(known, resamples=10))
    assert {name: set(figure.args[0]) for name, figure in figures.items()} == {
        "cost-p95": {"weak", "twin"},
        "cost-dollars": {"weak", "twin"},
    }
    none = collection([each.model_copy(update={"settings": recorded}) for each in MADE])
    assert _cost_figures(none, comparison(none, resamples=10)) == {}


def test_without_matplotlib_the_tables_are_written_and_one_line_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    results = write_records(MADE, tmp_path / "results")
    written = compare(results, out=tmp_path / "report", resamples=10)
    assert {file.suffix for file in written.files} == {".md", ".tex", ".csv"}
    assert [notice for notice in written.notices if "figure" in notice] == [
        f"there are no figures: for these, {install_extra('report')}"
    ]
