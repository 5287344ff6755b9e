"""Pipelines of PyTerrier as retrievers and rerankers of ours, by name and as objects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from r2med import evaluate, load, run
from r2med.evaluation.running.batch import plan_run
from r2med.evaluation.running.planning import stage_plans
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.systems.system import System

pytest.importorskip("pandas", reason="pandas, which comes with pyterrier, is not installed")

DATA = "demo/MedQA-Diag"

MODULE = """
class Pipeline:
    def __init__(self, change):
        self.transform = change
    def __call__(self, frame):
        return self.transform(frame)

shortest = Pipeline(lambda frame: frame.assign(score=-frame["text"].str.len())[frame["rank"] < 3])
mute = Pipeline(lambda frame: frame[["qid"]])
everywhere = Pipeline(lambda frame: frame.assign(docno="nowhere", score=1.0))
broken = Pipeline(lambda frame: frame["no such column"])
number = 5
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "frames.py").write_text(MODULE)
    monkeypatch.delitem(sys.modules, "frames", raising=False)


def test_a_reranker_gets_all_candidates_of_a_query_and_what_it_leaves_out_comes_last() -> None:
    demo = load(DATA)
    plain = System.parse("bm25").run(demo, System.parse("bm25").runtime.store, 6).run
    system = System.parse("bm25 → pyterrier:frames:shortest@5")
    for query, ranking in system.run(demo, system.runtime.store, 6).run:
        before = [document for document, _ in plain.top(query, 6)]
        lengths = {document: len(demo.corpus.text(demo.corpus.row(document) or 0)) for document in before}
        assert [document for document, _ in ranking] == sorted(before[:3], key=lengths.__getitem__) + before[3:]
    assert evaluate(system, DATA).stages[-1].stage == "rerank"


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("pyterrier:frames", "the form of a Python pipeline is pyterrier:MODULE:NAME"),
        ("pyterrier:frame:shortest", r"no module 'frame' \(did you mean frames\?\)"),
        ("pyterrier:frames:number", "it has no method transform"),
        ("pyterrier:frames:broken", "pyterrier:frames:broken failed at .*no such column"),
        ("bm25 → pyterrier:frames:mute@5", "pyterrier:frames:mute returned no column docno"),
        ("pyterrier:frames:everywhere", "'nowhere', which is not in the corpus"),
        ("bm25 → pyterrier:frames:everywhere", "'nowhere', which is not a candidate: it can retrieve, but not rerank"),
    ],
)
def test_what_is_wrong_with_a_pipeline_is_one_line(system: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        evaluate(system, DATA)


def test_two_pipelines_that_print_alike_do_not_share_scores() -> None:
    pt = pytest.importorskip("pyterrier", reason="pyterrier is not installed", exc_type=ImportError)
    signs: list[Any] = []
    for sign in (1, -1):
        pipeline = pt.apply.doc_score(lambda row, sign=sign: sign * len(row["text"]))
        [cell] = run("bm25", "demo/Biology", rerank=[pipeline], out=None, depth=5)
        assert cell.record is not None and cell.record.system.startswith("bm25 → pyterrier:")
        signs.append(cell.record.mean)
    assert signs[0] != signs[1]


def test_a_pipeline_that_finds_is_a_retriever_for_rerankers_and_fusion() -> None:
    pytest.importorskip("pyterrier", reason="pyterrier is not installed", exc_type=ImportError)
    from r2med.publication.bridges.pyterrier import PyTerrierRetriever

    [cell] = run([PyTerrierRetriever("bm25", DATA)], DATA, out=None)
    assert cell.record is not None and cell.record.mean == evaluate("bm25", DATA).mean
    Path("pipes.py").write_text(
        "from r2med.publication.bridges.pyterrier import PyTerrierRetriever\n"
        f"bm25 = PyTerrierRetriever('bm25', {DATA!r}) % 20"
    )
    cells = run(["pyterrier:pipes:bm25 → bm25", "bm25+pyterrier:pipes:bm25"][1:], DATA, out=None)
    assert all(cell.record for cell in cells)
    live = System.parse("pyterrier:pipes:bm25").live(load(DATA), System.parse("bm25").runtime.store)
    assert live.answer(load(DATA).queries[0].text, 3).run.found[0] == 3


def test_a_plan_says_that_a_pipeline_runs_and_downloads_nothing() -> None:
    [(_, [stage])] = stage_plans(plan_run(["pyterrier:mine:pipeline"], ["demo/Biology"], setup=Setup()))
    assert stage.work.startswith("runs a pipeline of PyTerrier") and stage.fetch == 0
