"""Where the files of an evaluation lie: under names that every file system takes."""

from pathlib import Path

from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.results import evaluate
from r2med.results.places import slug
from r2med.store import Store

DATASET = Dataset("tiny", (Query("1", "fever"),), Corpus.of([("a", "fever")]), Qrels({"1": {"a": 1}}))


def test_a_name_keeps_what_a_person_reads_and_loses_what_files_cannot_have() -> None:
    assert slug("hyde(o3-mini) → bm25(k1=2.0)+nv@10") == "hyde_o3-mini_bm25_k1=2.0_+nv_10"
    assert slug("../..") == "unnamed"


def test_a_system_with_a_very_long_name_is_recorded_and_read_back(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["心é" * 20] * 5)
    folder.mkdir(parents=True)
    (folder / "run.trec").write_text("1 Q0 a 1 1.0 x\n")
    system, out, store = f"run:{folder / 'run.trec'}", tmp_path / "out", Store(tmp_path / "store")
    record = evaluate(system, DATASET, out, store=store)
    assert len(record.system.encode()) > 255 and record.mean["nDCG@10"] == 1
    [written] = out.rglob("*.json")
    before = written.stat()
    evaluate(system, DATASET, out, store=store)
    assert written.stat() == before
