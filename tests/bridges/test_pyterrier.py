"""PyTerrier, both ways: our datasets and systems are its own, its pipelines are retrievers and rerankers of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

pt = pytest.importorskip(
    "pyterrier", reason="pyterrier needs pytrec-eval-terrier, which has wheels for x86_64 only", exc_type=ImportError
)

from r2med import evaluate, load, run  # noqa: E402
from r2med.bridges.pyterrier import Provider, Reranker, Retriever, write_pipeline_run  # noqa: E402

DATA = "demo/MedQA-Diag"


def test_a_dataset_has_topics_qrels_and_documents() -> None:
    ours, theirs = load(DATA), Provider().get_dataset(DATA)
    assert dict(theirs.get_topics().itertuples(index=False)) == {query.id: query.text for query in ours.queries}
    assert len(theirs.get_qrels()) == ours.qrels.positives
    assert [tuple(row.values()) for row in theirs.get_corpus_iter()] == list(ours.corpus)
    with pytest.raises(KeyError, match="Biologie"):
        Provider().get_dataset("Biologie")


def test_a_system_is_a_transformer_and_what_it_found_is_a_retriever_again(tmp_path: Path) -> None:
    bm25 = Retriever("bm25", DATA)
    found = (bm25 % 5)(Provider().get_dataset(DATA).get_topics())
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"] and found["rank"].max() == 4
    write_pipeline_run(bm25, DATA, tmp_path / "pt.trec")
    assert evaluate(f"run:{tmp_path / 'pt.trec'}", DATA).mean == evaluate("bm25", DATA).mean


def test_a_pipeline_is_a_reranker() -> None:
    shortest = Reranker(pt.apply.doc_score(lambda row: -len(row["text"])))
    [cell] = run("bm25", DATA, rerank=[shortest], out=None, depth=5)
    assert cell.record is not None and cell.record.stages[-1].stage == "rerank"
