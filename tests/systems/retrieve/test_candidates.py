"""Candidates from a run file: they are used unchanged, and all their queries and documents must exist."""

import os
from pathlib import Path

import pytest

from r2med import System, UserError, load
from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.data.runs import write_run
from r2med.foundation.runtime.runtime import Runtime
from r2med.systems.retrieve.candidates import Candidates

DATASET = Dataset(
    "tiny",
    (Query("1", "fever"), Query("2", "cough", excluded=("b",)), Query("q 3", "rash")),
    Corpus.of([("a", "fever"), ("b", "cough"), ("c d", "rash")]),
    Qrels({"1": {"a": 1}}),
)


def searched(path: Path, tmp_path: Path, k: int = 10) -> dict[str, list[tuple[str, float]]]:
    return dict(System.parse(f"run:{path}").run(DATASET, k).run)


def test_a_run_is_read_as_trec_eval_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 2.0 x\n2 Q0 b 1 9 x\n2 Q0 a 2 7 x\n")
    found = searched(path, tmp_path)
    assert [document for document, _ in found["1"]] == ["b", "a"], "ties go by id descending, whatever the rank says"
    assert found["2"] == [("a", 7.0)], "what the query excludes is left out"
    assert found["q 3"] == [], "a query that the run does not have found nothing"
    assert [len(ranking) for ranking in searched(path, tmp_path, k=1).values()] == [1, 1, 0]


def test_a_run_written_by_r2med_is_read_with_its_original_ids(tmp_path: Path) -> None:
    run = System.parse("bm25").run(DATASET, 10).run
    write_run(run, tmp_path / "ours.trec.gz")
    assert searched(tmp_path / "ours.trec.gz", tmp_path) == dict(run)
    assert dict(run)["q 3"][0][0] == "c d"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("1 Q0 z 1 2.0 x\n", "has the document 'z', which is not in the corpus"),
        ("9 Q0 a 1 2.0 x\n", r"has queries that are not in the dataset \(1 of 1\), such as '9'"),
        ("1 Q0 a 1 2.0 x\n9 Q0 a 1 2.0 x\n", r"are not in the dataset \(1 of 2\), such as '9'"),
        ("1 Q0 a 1 inf x\n1 Q0 b 2 1 x\n", "query '1' and document 'a' is infinite or too large"),
        ("1 Q0 a 1 2 x\n1 Q0 b 2 -1e39 x\n", "query '1' and document 'b' is infinite or too large"),
        ("", "is empty: there is nothing to rerank"),
        ("1 Q0 a 2.0\n", "run.trec:1: 4 columns instead of 6"),
        (None, "no such run file"),
    ],
)
def test_a_run_of_another_dataset_gives_a_one_line_error(tmp_path: Path, lines: str | None, says: str) -> None:
    path = tmp_path / "run.trec"
    if lines is not None:
        path.write_text(lines)
    with pytest.raises(UserError, match=says):
        searched(path, tmp_path)


def test_a_folder_has_one_run_for_each_dataset(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    (runs / "demo").mkdir(parents=True)
    system, dataset = System.parse(f"run:{runs}"), load("demo/Biology")
    with pytest.raises(UserError, match=r"has no run for demo/Biology; add demo/Biology\.trec"):
        system.run(dataset, 5)
    (runs / "demo" / "Biology.trec").write_text(f"{dataset.queries[0].id} Q0 {dataset.corpus.id(3)} 1 1 x\n")
    found = dict(system.run(dataset, 5).run)
    assert found[dataset.queries[0].id] == [(dataset.corpus.id(3), 1.0)]
    (runs / "demo" / "Biology.run").write_text("")
    with pytest.raises(UserError, match="has 2 runs for demo/Biology"):
        system.run(dataset, 5)


def test_a_folder_of_runs_may_be_part_of_a_fusion(tmp_path: Path) -> None:
    runs, dataset = tmp_path / "runs", load("demo/Biology")
    (runs / "demo").mkdir(parents=True)
    system = System.parse(f"run:{runs}+fuse(bm25+run:{runs}, method=minmax)")
    with pytest.raises(UserError, match="has no run for demo/Biology"):
        system.check([dataset])
    last = dataset.corpus.id(3)
    (runs / "demo" / "Biology.trec").write_text(f"{dataset.queries[0].id} Q0 {last} 1 1 x\n")
    found = dict(system.run(dataset, 5).run)
    assert found[dataset.queries[0].id][0][0] == last
    assert system.name.startswith(f"run:{runs}+fuse(bm25+run:{runs}")


def test_an_unknown_document_is_reported_at_any_depth(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("1 Q0 a 1 2.0 x\n1 Q0 z 2 1.0 x\n")
    with pytest.raises(UserError, match="has the document 'z'"):
        searched(path, tmp_path, k=1)


@pytest.mark.parametrize("name", ["my run (1), b=0.4+x.trec", "run@10", "a -> b → c.trec", "100%25.trec", "plain.trec"])
def test_any_file_name_gives_a_system_name_that_parses_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("1 Q0 a 1 2.0 x\n")
    system = System(Candidates.at(path))
    again = System.parse(system.name)
    assert again.retriever == Candidates.at(path) and again.name == system.name
    assert dict(again.run(DATASET, 5).run)["1"] == [("a", 2.0)]


def test_a_changed_file_gets_another_key(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("1 Q0 a 1 2.0 x\n")
    first = searched(path, tmp_path)
    path.write_text("1 Q0 b 1 2.0 x\n")
    assert searched(path, tmp_path) != first


def test_a_path_with_a_null_character_gives_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a path cannot have a null character"):
        System.parse("run:a%00b").run(DATASET, 10)


def test_a_device_or_a_pipe_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """Reading never ends: /dev/zero has no last byte, and a pipe waits for a writer."""
    pipe = tmp_path / "run.trec"
    os.mkfifo(pipe)
    for path in (Path("/dev/zero"), pipe):
        with pytest.raises(UserError, match=f"{path} is a device or a pipe, not a run file; write the run to a file"):
            searched(path, tmp_path)
        with pytest.raises(UserError, match="is a device or a pipe"):
            Candidates.at(path).key(DATASET, Runtime())
