"""Results in Python: tables, the best, orders, and models that are objects."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import r2med
from r2med import Dataset, Setup, UserError
from r2med.evaluation.running.results import Results, SystemResults
from r2med.foundation.pages.cells import Marked
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store

WARD = Dataset.of(
    {"q1": "chest pain and a cold sweat", "q2": "<b>sudden</b> loss of speech"},
    {
        "d1": "A cold sweat and chest pain: think of the heart.",
        "d2": "Loss of speech: think of a stroke.",
        "d3": "Tax.",
    },
    {"q1": {"d1": 1}, "q2": {"d2": 2}},
    name="ward",
)


class Letters:
    """Encodes a text as how often it has each letter."""

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: list[str]) -> Any:
        self.calls += 1
        return np.array([[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts])


class Longest:
    """A reranker that likes long documents."""

    def predict(self, pairs: list[tuple[str, str]]) -> list[float]:
        return [float(len(document)) for _, document in pairs]


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Runtime(store=Store(tmp_path / "store"))


@pytest.fixture
def results(setup: Setup) -> Results:
    clinic = replace(r2med.load("demo/Biology"), name="clinic")  # both are own data, and are averaged together
    return r2med.run(["bm25", "bm25(k1=0)"], [WARD, clinic], out=None, setup=setup)


def with_a_missing_record(results: Results) -> Results:
    """Return results with a further first row, whose system has no record on the first dataset."""
    missing = SystemResults("none", (None, *results.rows[0].cells[1:]), ("gone", ""))
    return replace(results, rows=(missing, *results.rows))


def test_results_are_a_table_in_a_print_and_in_a_notebook(results: Results) -> None:
    table = results.table()
    assert table.heads == ("system", "ward", "clinic", "Avg", "s / query", "dollars")
    assert repr(table).splitlines()[2].startswith("bm25  ")
    assert table.rows[0][1] == Marked(100.0, bold=True) and table.rows[0][-1] == 0.0
    assert "<td>bm25(k1=0)</td>" in results._repr_html_()
    assert results.systems == ["bm25", "bm25(k1=0)"]


def test_the_best_is_the_system_with_the_best_average(results: Results) -> None:
    averages = {row[0]: row[3].value for row in results.table().rows}
    assert averages[results.best()] == max(averages.values())
    with pytest.raises(UserError, match="no system has a record on every dataset"):
        Results(("ward",), (SystemResults("bm25", (None,), ("no such set",)),)).best()


def test_systems_are_compared_by_their_records(results: Results) -> None:
    comparison = results.compare(baseline="bm25")
    assert [(pair.a, pair.b) for pair in comparison.pairs] == [("bm25(k1=0)", "bm25")]
    with pytest.raises(UserError, match="no baseline 'bm52'"):
        results.compare(baseline="bm52")


def test_rows_are_sorted_by_any_column(results: Results) -> None:
    assert results.sorted("name").systems == ["bm25", "bm25(k1=0)"]
    scores = [row[2].value for row in results.table(sort="clinic").rows]
    assert scores == sorted(scores, reverse=True)
    seconds = [float(row[4]) for row in results.table(sort="seconds").rows]
    assert seconds == sorted(seconds)
    lacking = with_a_missing_record(results)
    assert lacking.sorted("ward").systems[-1] == "none"
    with pytest.raises(UserError, match="no order 'scor' \\(did you mean score"):
        results.sorted("scor")


def test_pandas_is_told_how_to_install_where_it_is_not_there(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pip install pandas"):
        results.to_pandas()


def test_a_data_frame_has_a_row_for_each_cell(results: Results) -> None:
    pytest.importorskip("pandas")
    lacking = with_a_missing_record(results)
    frame = lacking.to_pandas()
    assert list(zip(frame["system"], frame["dataset"], strict=True))[3] == ("bm25", "clinic")
    assert frame["nDCG@10"].isna().tolist() == [True, False, False, False, False, False]
    assert frame["nDCG@10"][2] == 1.0 and frame["error"][0] == "gone" and "mean" not in frame


def test_a_model_may_be_an_object(setup: Setup) -> None:
    first, second = Letters(), Letters()
    results = r2med.run(["bm25", first, second], WARD, rerank=[Longest()], out=None, setup=setup)
    assert not results.errors
    name = f"py:{__name__}:Letters"
    reranker = f"py:{__name__}:Longest@100"
    assert results.systems == [f"{each} → {reranker}" for each in ("bm25", name, f"{name}-2")]
    assert first.calls and second.calls
    record = results.records[0]
    assert repr(record) == f"Record({record.system} on ward: nDCG@10 {record.mean['nDCG@10']:.4f})"


def test_an_object_may_have_been_trained_further_since(setup: Setup, tmp_path: Path) -> None:
    model = Letters()
    for _ in range(2):
        before = model.calls
        r2med.run(model, WARD, out=tmp_path, setup=setup)
        assert model.calls > before
    model.revision = "1"  # type: ignore[attr-defined]
    r2med.run(model, WARD, out=tmp_path, setup=setup)
    before = model.calls
    r2med.run(model, WARD, out=tmp_path, setup=setup)
    assert model.calls == before


def test_what_is_no_model_is_told_in_one_line(setup: Setup) -> None:
    with pytest.raises(UserError, match="an object of int, used as a system: it has no method encode_queries"):
        r2med.run(3, WARD, setup=setup)


def test_what_recorded_texts_took_is_unknown_and_they_are_sorted_last(setup: Setup) -> None:
    results = r2med.run(["hyde(author) → bm25", "bm25"], "demo/Biology", out=None, setup=setup)
    recorded, plain = results.table().rows
    assert list(recorded[-2:]) == ["unknown"] * 2 and "unknown" not in plain
    summary = results.summaries()[0]
    assert [summary[name] for name in ("cost_usd", "llm_tokens", "seconds_per_query")] == [None] * 3
    for order in ("seconds", "dollars", "tokens"):
        assert results.sorted(order).systems == ["bm25", "hyde(author) → bm25"]


def test_a_record_states_the_ranks_after_each_stage_down_to_its_depth(setup: Setup) -> None:
    sweat = Dataset.of(
        {"q": "cold sweat"}, {"d1": "cold sweat", "d2": "cold sweat and many other words"}, {"q": {"d1": 1}}
    )
    for k, last in ((10, {"q": {"d1": 2}}), (1, {})):
        [record] = r2med.run("bm25", sweat, rerank=[Longest()], k=k, out=None, setup=setup).records
        assert [stage.gold for stage in record.stages] == [{"q": {"d1": 1}}, last]
        assert record.gold == last
