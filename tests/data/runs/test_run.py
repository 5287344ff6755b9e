"""Runs from dicts and files."""

from pathlib import Path
from typing import Any

import pytest

from r2med import Run, score
from r2med.data.runs import write_run
from support.facts import error_states

RANKINGS = {"q1": {"a": 0.5, "b": 2, "c": 0.5}, "q<2>": {"b": 1.0}}


def test_a_run_of_a_dict_is_ranked_and_reads_back(tmp_path: Path) -> None:
    run = Run.of(RANKINGS)
    assert run.top("q1") == [("b", 2.0), ("c", 0.5), ("a", 0.5)]
    assert run.top("q1", 1) == [("b", 2.0)]
    write_run(run, tmp_path / "run.trec")
    assert list(Run.read(str(tmp_path / "run.trec"))) == list(run)
    assert "<td>q&lt;2&gt;</td>" in run._repr_html_()


@pytest.mark.parametrize(
    "rankings", [{"q": {"d": "high"}}, {"q": {"d": float("nan")}}, {"q": ["d"]}, {"q": {"d": [1]}}]
)
def test_an_invalid_run_gives_a_one_line_error(rankings: Any) -> None:
    with error_states("query id", "document id", "score"):
        Run.of(rankings)
    with error_states("'q3'"):
        Run.of(RANKINGS).top("q3")


def test_dicts_are_scored_as_they_are() -> None:
    scores = score({"q1": {"a": 1}, "q<2>": {"b": 1}}, RANKINGS, ["nDCG@10", "MRR"])
    assert scores["mrr"] == pytest.approx((1 / 3 + 1) / 2)
    assert repr(scores) == f"Scores(2 queries: nDCG@10 {scores['nDCG@10']:.4f}, MRR 0.6667)"
    assert "<td>MRR</td><td>0.6667</td>" in scores._repr_html_()
    with error_states("'nDGC'"):
        score({"q1": {"a": 1}}, RANKINGS, ["nDGC"])
