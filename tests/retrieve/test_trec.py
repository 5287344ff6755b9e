"""TREC run files: what is written reads back, and a fault is named by its line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.errors import UserError
from r2med.retrieve import Run, read_run, write_run
from r2med.retrieve.run import IdTable

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
SCORES = st.floats(width=32, allow_nan=False, allow_infinity=False)
RANKINGS = st.dictionaries(IDS, st.dictionaries(IDS, SCORES, max_size=6), max_size=4)


def run_of(rankings):
    table = IdTable(tuple(sorted({d for scores in rankings.values() for d in scores})))
    found = [
        (
            np.array([table.table.index(d) for d in scores], dtype=np.int32),
            np.array(list(scores.values()), dtype=np.float32),
        )
        for scores in rankings.values()
    ]
    return Run.ranked(list(rankings), found, table)


@given(RANKINGS, st.sampled_from(["run.txt", "run.gz"]))
def test_what_is_written_reads_back(tmp_path_factory, rankings, name):
    path = tmp_path_factory.mktemp("run") / name
    run = run_of(rankings)
    write_run(run, path, tag="any tag")
    assert list(read_run(path, encoded=True)) == [entry for entry in run if entry[1]]


@given(RANKINGS)
def test_rankings_descend_by_score_then_by_id(rankings):
    for _, ranking in run_of(rankings):
        assert ranking == sorted(ranking, key=lambda pair: (pair[1], pair[0]), reverse=True)


def test_the_same_run_gives_the_same_bytes(tmp_path):
    run = run_of({"q": {"a": 1.0, "b": 0.1}})
    write_run(run, tmp_path / "1.gz")
    write_run(run, tmp_path / "2.gz")
    assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "2.gz").read_bytes()


def test_a_written_line_is_what_trec_eval_reads(tmp_path):
    write_run(run_of({"q 1": {"doc a": 0.1}}), tmp_path / "run.txt", tag="bm25")
    assert (tmp_path / "run.txt").read_text() == "q%201 Q0 doc%20a 1 0.1 bm25\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("q Q0 d 1 0.5 t\nq Q0 d 2 0.4 t\n", ":2: document 'd' comes twice"),
        ("q Q0 d 1 0.5\n", ":1: 5 columns instead of 6"),
        ("q Q0 d 1 high t\n", ":1: score 'high' is not a number"),
        ("q Q0 d 1 nan t\n", ":1: score 'nan' is not a number"),
        (b"\xff\xfe\x00", "UTF-8"),
        (gzip.compress(b"q Q0 d 1 0.5 t\n" * 50)[:-9], "not a TREC run"),
    ],
)
def test_a_fault_is_one_line_with_its_place(tmp_path, content, says):
    path = tmp_path / "run"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError) as error:
        read_run(path)
    assert says in str(error.value)


def test_a_missing_file_and_a_folder_are_one_line(tmp_path):
    with pytest.raises(UserError, match="no such run file"):
        read_run(Path(tmp_path / "none"))
    with pytest.raises(UserError, match="is a folder"):
        read_run(tmp_path)


def test_leaving_documents_out_keeps_order_and_fills_up_to_k():
    run = run_of({"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"a": 1.0}})
    left = run.without({"q": np.array([0, 2], dtype=np.int32)}, k=1)
    assert [[d for d, _ in ranking] for _, ranking in left] == [["b"], ["a"]]
