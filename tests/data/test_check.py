"""`check` reports every problem at once, each with its file and line; a sound dataset is called sound."""

import json
from pathlib import Path

import pytest

from r2med.data import load
from r2med.data.check import check
from r2med.data.problems import MAX_MESSAGES, Problems
from r2med.foundation.core.errors import UserError
from support.datasets import DOCUMENTS, QRELS, QUERIES, beir_folder, r2med_folder, write_jsonl
from support.facts import each_states, some_states, states

CORPUS = (
    rb"""{"id": "d1", "text": "sound"}
{"id": "d2", "text": "bad JSON",}
{"id": "d3"}
{"id": 4, "text": "wrong type"}
{"id": "d1", "text": "another text for an id of line 1"}
{"id": "d6", "text": " \t "}
{"id": "d7", "text": "not UTF-8: """
    + b'\xff"}\n'
    + rb"""{"id": "d8", "text": "a lone surrogate: \ud800"}
{"id": "d9", "text": "a raw control character: """
    + b'\x01"}\n'
    + rb"""{"id": "", "text": "no id"}
["not", "an", "object"]
{"id": null, "text": true}
{"id": "d1", "text": "sound"}
{"id": "d14", "text": "control characters, escaped: \u0000"}
{"id": "d15", "te"""
)

QUERY = rb"""{"id": "q1", "text": "sound"}
{"id": "q2", "text": "without qrels"}
{"id": "q1", "text": "another text for an id of line 1"}
{"id": "q4", "text": ""}
{"id": "q5", "answer": "missing text"}
{"id": "q6", "text": "only an irrelevant document"}
{"id": "q7", "text": "wrong type", "answer": 7}
{"id": "q8", "text": "wrong ids", "excluded_ids": [8]}
{"id": "q9", "text": "surrogate", "excluded_ids": ["\udfff"]}
"""

QRELS_ROWS = rb"""{"q_id": "q1", "p_id": "d1", "score": 1}
{"q_id": "nobody", "p_id": "d1", "score": 1}
{"q_id": "q1", "p_id": "nothing", "score": 1}
{"q_id": "q4", "p_id": "d1", "score": 1}
{"q_id": "q1", "p_id": "d1", "score": 0}
{"q_id": "q1", "p_id": "d1", "score": "1"}
{"q_id": "q1", "p_id": "d1", "score": 0.5}
{"q_id": "q1", "p_id": "d1", "score": true}
oops
{"q_id": "q6", "p_id": "d1", "score": 0}
{"q_id": "q1", "score": 1}
"""

CARD = "[counts]\nqueries = 9\ndocuments = 40\npositives = 3\nmost_positives = 5\n"

# file:line of every fault above, and the facts of its line.
EXPECTED = """
corpus.jsonl:2|JSON
corpus.jsonl:3|'text'|missing
corpus.jsonl:4|'id'|string|number 4
corpus.jsonl:6|'d6'|empty text
corpus.jsonl:7|UTF-8|byte 34
corpus.jsonl:8|'text'|surrogate
corpus.jsonl:9|JSON|column 48
corpus.jsonl:10|empty id
corpus.jsonl:11|JSON object|list
corpus.jsonl:12|'id'|string|null
corpus.jsonl:12|'text'|string|true
corpus.jsonl:15|last line
query.jsonl:2|'q2'|no qrels
query.jsonl:4|'q4'|empty text
query.jsonl:5|'text'|missing
query.jsonl:6|'q6'|no relevant document
query.jsonl:7|'answer'|string|number 7
query.jsonl:8|'excluded_ids'|list of strings
query.jsonl:9|'excluded_ids'|list of strings
qrels.jsonl:2|query 'nobody'|unknown
qrels.jsonl:3|document 'nothing'|unknown
qrels.jsonl:5|'q1'|'d1'|judged 1|line 1|0
qrels.jsonl:6|'score'|whole number|string
qrels.jsonl:7|0.5|whole number
qrels.jsonl:8|'score'|whole number|true
qrels.jsonl:9|JSON
qrels.jsonl:11|'p_id'|missing
card of faulty|4 queries|9
card of faulty|5 documents|40
card of faulty|4 positives|3
card of faulty|2 most positives|5
""".strip().splitlines()


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    folder = tmp_path / "faulty"
    folder.mkdir()
    (folder / "corpus.jsonl").write_bytes(CORPUS)
    (folder / "query.jsonl").write_bytes(QUERY)
    (folder / "qrels.jsonl").write_bytes(QRELS_ROWS)
    (folder / "card.toml").write_text(CARD)
    return folder


def lines_of(found) -> list[str]:
    return [str(problem) for problem in (*found.problems, *found.flaws)]


def test_every_problem_is_reported_at_once_with_file_and_line(faulty: Path) -> None:
    found = check(faulty)
    lines = lines_of(found)
    for expected in EXPECTED:
        some_states(lines, faulty, *expected.split("|"))
    assert len(lines) == len(found) == len(EXPECTED)
    each_states(
        found.notices,
        [f"{faulty}/query.jsonl", "1 repeated", "'q1'", "line 1", "query.jsonl:3", "last"],
        [f"{faulty}/corpus.jsonl", "2 repeated"],
        [f"{faulty}/corpus.jsonl", "1 texts", "control characters"],
    )


def test_each_problem_is_evidence_of_a_finding_with_a_stable_id(faulty: Path) -> None:
    found = check(faulty)
    findings = {finding.id: finding for finding in found.findings()}
    assert {name: finding.verdict for name, finding in findings.items()} == {
        "files": "broken",
        "scorable-queries": "look",
        "missing-documents": "look",
        "empty-documents": "look",
        "repeated-queries": "sound",
        "encoding": "sound",
        "aspects-and-nuggets": "sound",
        "card-counts": "look",
    }
    rows = [row for finding in findings.values() for table in finding.evidence for row in table.rows]
    assert sorted(rows, key=str) == sorted(
        ((str(p.path), p.line, p.message) for p in (*found.problems, *found.flaws)), key=str
    )
    assert findings["missing-documents"].sentence == f"{lines_with('unknown document', found)}."
    assert "control characters" in findings["encoding"].sentence
    assert findings["aspects-and-nuggets"].numbers == {"problems": 0, "notices": 0}


def lines_with(text: str, found: Problems) -> str:
    return "; ".join(line for line in found.lines() if text in line)


def test_a_sound_folder_has_sound_findings(tmp_path: Path) -> None:
    assert {finding.verdict for finding in check(r2med_folder(tmp_path / "set")).findings()} == {"sound"}


@pytest.mark.parametrize("count", [3, 4])
def test_a_finding_of_many_lines_names_three(count: int) -> None:
    problems = Problems()
    for number in range(count):
        problems.flaw(Path(f"f{number}"), 1, "odd")
    sentence = problems.finding("files").sentence
    states(sentence, "f0:1", "f1:1", "f2:1")
    assert "f3:1" not in sentence
    assert ("1 more" in sentence) == (count > 3)


def test_flaws_of_a_corpus_in_the_store_keep_their_check(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "blank", [*DOCUMENTS, {"id": "e", "text": ""}])
    first, again = (check(folder).finding("empty-documents") for _ in range(2))
    assert first == again and first.verdict == "look"


def test_a_sound_folder_has_no_problems(tmp_path: Path) -> None:
    found = check(r2med_folder(tmp_path / "set"))
    assert (len(found), found.notices) == (0, [])


def test_flaws_do_not_stop_a_load_but_are_mentioned(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", qrels=[*QRELS, {"q_id": "0", "p_id": "gone", "score": 1}])
    each_states(lines_of(check(folder)), [f"{folder}/qrels.jsonl:4", "'gone'", "corpus"])
    blank = r2med_folder(tmp_path / "blank", [*DOCUMENTS, {"id": "e", "text": ""}])
    each_states(load(blank).notices, ["blank", 1, f"r2med data check {blank}"])


def test_counts_as_on_the_card_are_sound(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", [*DOCUMENTS, DOCUMENTS[0]])
    # Rows are counted before repeated ones are merged, as the benchmark counts them.
    (folder / "card.toml").write_text("[counts]\nqueries = 2\ndocuments = 4\npositives = 2\nmost_positives = 1\n")
    assert lines_of(check(folder)) == []


def test_a_folder_called_as_a_dataset_of_the_benchmark_must_have_its_counts(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "Biology")
    each_states(
        lines_of(check(folder)),
        [folder, "2 queries", "Biology", 103],
        [folder, "3 documents", "Biology", 57359],
        [folder, "2 positives", "Biology", 374],
        [folder, "1 most positives", "Biology", 19],
    )


def test_empty_files_are_reported(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", [], [], [])
    each_states(
        lines_of(check(folder)),
        [f"{folder}/qrels.jsonl", "no judgements"],
        [f"{folder}/query.jsonl", "no queries"],
        [f"{folder}/corpus.jsonl", "no documents"],
    )


def test_an_empty_corpus_is_reported_with_what_it_leaves_dangling(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set", [])
    each_states(
        lines_of(check(folder)),
        [f"{folder}/qrels.jsonl:1", "document '0'"],
        [f"{folder}/qrels.jsonl:2", "document 'd2'"],
        [f"{folder}/qrels.jsonl:3", "document 'd2'"],
        [f"{folder}/corpus.jsonl", "no documents"],
    )


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_file_cut_off_anywhere_in_its_last_line_is_reported(tmp_path: Path, cut: int) -> None:
    folder = r2med_folder(tmp_path / "set")
    whole = json.dumps({"id": "last", "text": "Ödem ﷽ 😀"}, ensure_ascii=False).encode()
    path = folder / "corpus.jsonl"
    path.write_bytes(path.read_bytes() + whole[:-cut])
    (problem,) = check(folder).problems
    assert str(problem).startswith(f"{path}:4: truncated last line")


def test_columns_of_a_qrels_file_are_checked_by_line(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set")
    (folder / "qrels.jsonl").unlink()
    path = folder / "qrels.txt"
    path.write_bytes(b"0 0 0 1\n1 0 d2 x\n1 0 d2 1\n\xff 0 d2 1\n1 d2 1 1 1\n1 0 2")
    each_states(
        check(folder).problems,
        [f"{path}:2", "grade 'x'"],
        [f"{path}:4", "UTF-8", "byte 1"],
        [f"{path}:5", "5 columns", 4, "TREC"],
        [f"{path}:6", "3 columns", 4, "TREC", "last line"],
    )


def test_a_line_of_neither_form_is_told_both(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set")
    (folder / "qrels.jsonl").write_text("0 0\n")
    each_states(check(folder).problems, ["2 columns", "3 (query document grade)", "4 (TREC)"])


def test_a_broken_first_line_does_not_condemn_the_others(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set")
    path = folder / "qrels.jsonl"
    path.write_text("oops\n" + path.read_text())
    (problem,) = check(folder).problems
    states(problem, f"{path}:1", "JSON", "column 1")


def test_beir_folders_are_checked_too(tmp_path: Path) -> None:
    folder = beir_folder(tmp_path / "set", qrels=[*QRELS, {"q_id": "9", "p_id": "8", "score": 1}])
    write_jsonl(folder / "queries.jsonl", [{"_id": row["id"], "text": row["text"]} for row in QUERIES] + [{"_id": "2"}])
    each_states(
        lines_of(check(folder)),
        [f"{folder}/queries.jsonl:3", "'text'", "_id"],
        [f"{folder}/qrels/test.tsv:5", "query '9'"],
        [f"{folder}/qrels/test.tsv:5", "document '8'"],
    )


def test_a_million_bad_lines_do_not_fill_the_memory(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set")
    with (folder / "corpus.jsonl").open("a") as file:
        file.write("oops\n" * (MAX_MESSAGES + 500))
    found = check(folder)
    assert len(found.problems) == MAX_MESSAGES
    assert len(found) == MAX_MESSAGES + 500
    with pytest.raises(UserError, match=f"and {MAX_MESSAGES + 499:,} more"):
        load(folder)


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ({"_id": "1", "contents": "x"}, ["'id'", "_id, contents", "`_id`?"]),
        ({"id": "1", "contents": "x"}, ["'text'", "id, contents", "`contents`?"]),
        ({"id": "1", "\x1b[2J": "x"}, ["'text'", "id, '\\x1b[2J'"]),
        ({"id": "1"} | {f"f{n}": n for n in range(9)}, ["'text'", "id, f0, f1, f2, f3, f4, …"]),
        ({}, ["'id'", "empty"]),
    ],
)
def test_a_missing_field_is_told_with_those_that_are_there(
    tmp_path: Path, row: dict[str, object], facts: list[str]
) -> None:
    states(check(r2med_folder(tmp_path / "set", [row])).problems[0].message, "missing field", *facts)


def test_deeply_nested_json_is_a_problem_and_not_a_crash(tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "set")
    path = folder / "corpus.jsonl"
    path.write_text(path.read_text() + "[" * 100_000 + "]" * 100_000 + "\n")
    (problem,) = check(folder).problems
    assert (problem.path, problem.line) == (path, 4)
