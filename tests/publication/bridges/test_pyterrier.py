"""Our datasets and systems in PyTerrier."""

from __future__ import annotations

import pytest

NO_PYTERRIER = "pyterrier is not installed: extra pyterrier; on Linux on ARM it must be compiled"
pt = pytest.importorskip("pyterrier", reason=NO_PYTERRIER, exc_type=ImportError)

from r2med import evaluate, load  # noqa: E402
from r2med.publication.bridges.pyterrier import PyTerrierRetriever  # noqa: E402

DATA = "demo/MedQA-Diag"


def test_a_dataset_has_topics_qrels_and_documents() -> None:
    ours, theirs = load(DATA), pt.get_dataset(f"r2med:{DATA}")
    assert dict(theirs.get_topics().itertuples(index=False)) == {query.id: query.text for query in ours.queries}
    assert len(theirs.get_qrels()) == ours.qrels.positives
    assert [tuple(row.values()) for row in theirs.get_corpus_iter()] == list(ours.corpus)
    with pytest.raises(KeyError, match="Biologie"):
        pt.get_dataset("r2med:Biologie")


def test_a_system_is_a_transformer_that_scores_there_as_here() -> None:
    dataset, bm25 = pt.get_dataset(f"r2med:{DATA}"), PyTerrierRetriever("rm3 → bm25", DATA)
    found = (bm25 % 5)(dataset.get_topics().assign(qnote="kept"))
    assert {"qid", "query", "qnote", "docno", "score", "rank"} == set(found.columns) and found["rank"].max() == 4
    assert set(pt.inspect.transformer_outputs(bm25, ["qid", "query"])) >= {"qid", "docno", "score", "rank"}
    table = pt.Experiment([bm25], *dataset.get_topicsqrels(), ["ndcg_cut_10", "recall_5"])
    record = evaluate("rm3 → bm25", DATA)
    assert table["ndcg_cut_10"][0] == pytest.approx(record.mean["nDCG@10"])
    assert table["recall_5"][0] == pytest.approx(record.mean["R@5"])


def test_objects_print_as_what_they_are() -> None:
    assert repr(PyTerrierRetriever("bm25", DATA, k=5)) == f"PyTerrierRetriever('bm25', '{DATA}', k=5)"
    assert repr(pt.get_dataset(f"r2med:{DATA}")) == f"PyTerrierDataset('{DATA}')"
