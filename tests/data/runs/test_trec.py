"""TREC run files: a written run reads back unchanged, and an error names its line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med import score
from r2med.data.runs import Run, run_file, write_run
from r2med.data.runs.run import IdTable
from r2med.data.runs.trec import WrittenRun, format_run, read_judged_run
from r2med.evaluation.measure import Measure
from support.facts import each_states, error_states

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
    assert list(Run.read(path, encoded=True)) == [entry for entry in run if entry[1]]


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


def test_a_document_that_a_foreign_run_lists_twice_counts_once_with_its_better_score(tmp_path, caplog):
    path = tmp_path / "e5.txt"
    path.write_text("q Q0 d 1 0.8301 t\nq Q0 e 2 0.8300 t\nq Q0 d 3 0.8299 t\nq Q0 e 4 0.8302 t\n")
    assert [*Run.read(path)] == [("q", [("e", pytest.approx(0.8302)), ("d", pytest.approx(0.8301))])]
    each_states(caplog.messages, [path, 2, "better"])
    with error_states(f"{path}:3", "'d'", "'q'"):
        Run.read(path, encoded=True)


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        ("q Q0 d 1 0.5\n", [":1", 5, 6, "columns"]),
        ("q Q0 d 1 high t\n", [":1", "'high'", "score"]),
        ("q Q0 d 1 1_000 t\n", [":1", "'1_000'", "score"]),
        ("q Q0 d 1 nan t\n", [":1", "'nan'", "score"]),
        ("q Q0 d 1 １２ t\n", [":1", "'１２'", "score"]),
        (b"\xff\xfe\x00", ["UTF-8"]),
        (gzip.compress(b"q Q0 d 1 0.5 t\n" * 50, mtime=0)[:-9], ["TREC"]),
    ],
)
def test_an_error_is_one_line_with_the_line_number(tmp_path, content, facts):
    path = tmp_path / "run"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with error_states(path, *facts):
        Run.read(path)


def test_a_missing_file_and_a_folder_give_one_line_errors(tmp_path):
    with error_states("none", "no such"):
        Run.read(Path(tmp_path / "none"))
    with error_states(tmp_path, "folder"):
        Run.read(tmp_path)


def test_leaving_documents_out_keeps_order_and_fills_up_to_k():
    run = run_of({"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"a": 1.0}})
    left = run.without({"q": np.array([0, 2], dtype=np.int32)}, k=1)
    assert [[d for d, _ in ranking] for _, ranking in left] == [["b"], ["a"]]


def test_a_file_that_unpacks_to_far_too_much_gives_a_one_line_error(tmp_path, monkeypatch):
    monkeypatch.setattr(run_file, "MIN_UNPACKED_LIMIT", 1 << 20)
    path = tmp_path / "run.gz"
    with gzip.open(path, "wb") as file:
        for number in range(30_000):
            file.write(b"q Q0 %d 1 1.0 %b\n" % (number, b"t" * 500))
    with error_states("run.gz", 100):
        Run.read(path)


def test_a_packed_file_of_one_endless_line_gives_a_one_line_error(tmp_path, monkeypatch):
    monkeypatch.setattr(run_file, "MIN_UNPACKED_LIMIT", 1 << 20)
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(b"x" * (64 << 20)))
    with error_states("run.gz", 100):
        Run.read(path)


def test_readers_pass_over_comments_and_ids_that_look_like_one_are_kept(tmp_path):
    path = tmp_path / "run.trec.gz"
    run = Run.of({"#1": {"#a": 2.0, "b": 1.0}, "q": {"b": 1.0}})
    path.write_bytes(gzip.compress(b"# q Q0 b 1 9.0 other\n" + b"".join(format_run(run, "r2med"))))
    assert list(Run.read(path, encoded=True)) == list(run)
    assert WrittenRun(path, run.queries).top("#1", 5) == [("#a", 2.0), ("b", 1.0)]
    assert WrittenRun(path, run.queries).rank("q", "b") == 1


def test_a_run_is_decoded_if_the_decoded_ids_are_judged(tmp_path):
    path = tmp_path / "run.txt"
    write_run(run_of({"q 1": {"doc a": 0.1, "100%25": 0.2}}), path)
    ours = {"q 1": {"doc a": 1, "100%25": 1}}
    theirs = {"q%201": {"doc%20a": 1, "100%2525": 1}}
    assert score(ours, read_judged_run(path, ours)).mean[Measure("R", 10)] == 1
    assert score(theirs, read_judged_run(path, theirs)).mean[Measure("R", 10)] == 1


def test_foreign_ids_that_decoding_would_merge_stay_unchanged(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("q Q0 a%41 1 0.9 t\nq Q0 aA 2 0.8 t\n")
    qrels = {"q": {"a%41": 1, "aA": 1}}
    assert score(qrels, read_judged_run(path, qrels)).mean[Measure("R", 10)] == 1


def test_the_printed_form_of_a_run_is_short():
    assert repr(run_of({"q": {"a": 1.0, "b": 0.1}, "r": {}})) == "Run(2 queries, up to 2 documents each)"


@pytest.fixture
def written(tmp_path):
    documents = IdTable(tuple(sorted(["__proto__", "a b", "d", "d1", "Q0", "100%25"])))
    rows = np.array([[0, 1, 2, 3], [3, 2, -1, -1], [5, 4, 3, 2]], dtype=np.int32)
    scores = np.array([[4, 3, 2, 1], [2, 1, 0, 0], [9, 8.5, 7, 0.125]], dtype=np.float32)
    run = Run(("1", "11", "q 2"), rows, scores, documents)
    write_run(run, tmp_path / "run.trec.gz")
    return run, tmp_path / "run.trec.gz"


@pytest.mark.parametrize("order", [["1", "11", "none", "q 2"], ["q 2", "11", "1"]])
def test_tops_and_ranks_are_those_of_the_whole_file(written, order):
    run, path = written
    part = WrittenRun(path, order)
    for query, ranking in run:
        assert part.top(query, 3) == ranking[:3]
        assert part.top(query, 100) == ranking
        assert {d: part.rank(query, d) for d, _ in ranking} == {d: i for i, (d, _) in enumerate(ranking, 1)}
    assert part.rank("1", "nowhere") == 0
    assert part.top("none", 5) == []
    assert part.rank("none", "d") == 0


def test_a_missing_or_damaged_file_gives_a_one_line_error(written, tmp_path):
    _, path = written
    path.write_bytes(path.read_bytes()[:-9])
    for bad in (path, tmp_path / "none.trec.gz"):
        with error_states(bad, "again"):
            WrittenRun(bad, ["1"])
