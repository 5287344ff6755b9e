"""Candidates from a run file: taken as they are, and everything they name has to be there."""

from pathlib import Path

import pytest

from r2med import System, UserError, load
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.retrieve import write_run
from r2med.store import Store

DATASET = Dataset(
    "tiny",
    (Query("1", "fever"), Query("2", "cough", excluded=("b",)), Query("q 3", "rash")),
    Corpus.of([("a", "fever"), ("b", "cough"), ("c d", "rash")]),
    Qrels({"1": {"a": 1}}),
)


def searched(path: Path, tmp_path: Path, k: int = 10) -> dict[str, list[tuple[str, float]]]:
    return dict(System.parse(f"run:{path}").run(DATASET, Store(tmp_path / "store"), k).run)


def test_a_run_is_read_as_trec_eval_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 2.0 x\n2 Q0 b 1 9 x\n2 Q0 a 2 7 x\n")
    found = searched(path, tmp_path)
    assert [document for document, _ in found["1"]] == ["b", "a"], "ties go by id descending, whatever the rank says"
    assert found["2"] == [("a", 7.0)], "what the query excludes is left out"
    assert found["q 3"] == [], "a query that the run does not have found nothing"
    assert [len(ranking) for ranking in searched(path, tmp_path, k=1).values()] == [1, 1, 0]


def test_what_was_written_by_us_comes_back_with_its_ids(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    run = System.parse("bm25").run(DATASET, store, 10).run
    write_run(run, tmp_path / "ours.trec.gz")
    assert searched(tmp_path / "ours.trec.gz", tmp_path) == dict(run)
    assert dict(run)["q 3"][0][0] == "c d"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("1 Q0 z 1 2.0 x\n", "names the document 'z', which the corpus does not have"),
        ("9 Q0 a 1 2.0 x\n", "names 1 queries that the dataset does not have, such as '9'"),
        ("1 Q0 a 1 2.0 x\n9 Q0 a 1 2.0 x\n", "does not have, such as '9'"),
        ("", "is empty: there is nothing to rerank"),
        ("1 Q0 a 2.0\n", "run.trec:1: 4 columns instead of 6"),
        (None, "no such run file"),
    ],
)
def test_a_run_over_other_data_is_one_line(tmp_path: Path, lines: str | None, says: str) -> None:
    path = tmp_path / "run.trec"
    if lines is not None:
        path.write_text(lines)
    with pytest.raises(UserError, match=says):
        searched(path, tmp_path)


def test_a_folder_has_one_run_for_each_dataset(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "demo").mkdir(parents=True)
    system, dataset = System.parse(f"run:{runs}"), load("demo/Biology")
    with pytest.raises(UserError, match=r"has no run for demo/Biology: one is needed, as demo/Biology\.trec"):
        system.run(dataset, Store(tmp_path / "store"), 5)
    (runs / "demo" / "Biology.trec").write_text(f"{dataset.queries[0].id} Q0 {dataset.corpus.id(3)} 1 1 x\n")
    found = dict(system.run(dataset, Store(tmp_path / "store"), 5).run)
    assert found[dataset.queries[0].id] == [(dataset.corpus.id(3), 1.0)]
    (runs / "demo" / "Biology.run").write_text("")
    with pytest.raises(UserError, match="has 2 runs for demo/Biology"):
        system.run(dataset, Store(tmp_path / "store"), 5)


def test_a_changed_file_is_another_system(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("1 Q0 a 1 2.0 x\n")
    first = searched(path, tmp_path)
    path.write_text("1 Q0 b 1 2.0 x\n")
    assert searched(path, tmp_path) != first
