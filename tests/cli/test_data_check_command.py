"""The command data check prints the problems of datasets, one line for each cause."""

import json
from pathlib import Path

import pytest

from r2med.data.check import check
from support.datasets import DOCUMENTS, r2med_folder, write_jsonl
from support.facts import each_states, states
from support.fork_server import Command


def test_the_command_prints_every_problem_and_fails(tmp_path: Path, r2med: Command) -> None:
    faulty = r2med_folder(tmp_path / "faulty")
    (faulty / "qrels.jsonl").write_text('{"q_id": "0", "p_id": "nothing", "score": 1}\noops\n')
    (faulty / "card.toml").write_text("[counts]\nqueries = 9\ndocuments = 40\npositives = 3\nmost_positives = 5\n")
    done = r2med("data", "check", faulty)
    assert done.returncode == 2
    assert done.stderr == ""
    found = check(faulty)
    *lines, last = done.stdout.splitlines()
    expected = [str(problem) for problem in (*found.problems, *found.flaws)]
    assert len(expected) > 4 and set(expected) <= set(lines)
    assert last == f"{faulty}: {len(expected)} problems"


def test_the_bundled_demo_is_sound(r2med: Command) -> None:
    done = r2med("data", "check", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(": ")[1] for line in done.stdout.splitlines()] == ["sound"] * 8


def test_json_has_the_findings_of_each_dataset(tmp_path: Path, r2med: Command) -> None:
    folder = r2med_folder(tmp_path / "set", [])
    done = r2med("data", "check", folder, "demo/Biology", "--format", "json")
    assert done.returncode == 2
    shown = json.loads(done.stdout)
    assert [each["dataset"] for each in shown] == [str(folder), "demo/Biology"]
    assert shown[0]["findings"] == [finding.model_dump(mode="json") for finding in check(folder).findings()]
    assert {finding["verdict"] for finding in shown[1]["findings"]} == {"sound"}


def test_queries_that_ask_the_same_are_told(tmp_path: Path, r2med: Command) -> None:
    folder = r2med_folder(tmp_path / "twice")
    rows = [json.loads(line) for line in (folder / "query.jsonl").read_text().splitlines()]
    rows.append({**rows[0], "id": "again", "text": rows[0]["text"].upper() + " "})
    (folder / "query.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (notice,) = check(folder).notices
    states(notice, "1 query", "'again'", f"'{rows[0]['id']}'")
    assert "note: " in r2med("data", "check", folder).stdout


def test_many_problems_of_one_cause_are_one_line(tmp_path: Path, r2med: Command) -> None:
    folder = r2med_folder(tmp_path / "set", [{"doc_id": str(number), "text": "a"} for number in range(5000)])
    done = r2med("data", "check", folder)
    assert done.returncode == 2
    each_states(
        done.stdout.splitlines(),
        [f"{folder}/corpus.jsonl", 5000, "'id'", "`doc_id`?", "line 1"],
        [f"{folder}/qrels.jsonl:1", "document '0'"],
        [f"{folder}/qrels.jsonl:2", "document 'd2'"],
        [f"{folder}/qrels.jsonl:3", "document 'd2'"],
        [f"{folder}/corpus.jsonl", "no documents"],
        [folder, 5004, "problems"],
    )


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["Biologie"], ["'Biologie'", "Biology?"]),
        (["corpus.jsonl"], ["corpus.jsonl", "folder"]),
    ],
)
def test_what_is_no_dataset_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: list[str], facts: list[str], r2med: Command
) -> None:
    write_jsonl(tmp_path / "corpus.jsonl", DOCUMENTS)
    done = r2med("data", "check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    states(done.stderr, *facts)
