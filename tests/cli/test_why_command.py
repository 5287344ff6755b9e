"""The command why finds the record of a dataset by its folder."""

from __future__ import annotations

from pathlib import Path

from r2med import export_data, load
from r2med.evaluation.running.batch import plan_run
from r2med.evaluation.running.story import find_record, query_story
from r2med.foundation.runtime.setup import Setup
from support.datasets import r2med_folder
from support.facts import error_states, states
from support.fork_server import Command


def test_a_record_is_found_by_the_folder_of_its_dataset(tmp_path: Path, r2med: Command) -> None:
    export_data(load("demo/Biology"), tmp_path / "mine")
    plan_run(["bm25"], ["./mine"], k=100, setup=Setup()).evaluate(tmp_path / "results")
    assert find_record("bm25", "./mine") == find_record("bm25", "mine")
    shown = r2med("why", "bm25", "./mine", load("demo/Biology").queries[0].id)
    assert (shown.returncode, shown.stderr) == (0, "")


def test_of_two_folders_with_one_name_each_has_its_own_record(tmp_path: Path) -> None:
    for ward, source in (("a", "demo/Biology"), ("b", "demo/MedQA-Diag")):
        folder = tmp_path / ward / "notes"
        export_data(load(source), folder)
        plan_run(["bm25"], [str(folder)], k=100, setup=Setup()).evaluate(tmp_path / "results")
    for ward, source in (("a", "demo/Biology"), ("b", "demo/MedQA-Diag")):
        folder = tmp_path / ward / "notes"
        story = query_story(find_record("bm25", str(folder), tmp_path / "results"), load(source).queries[0].id, folder)
        assert story.query.text == load(source).queries[0].text
    (tmp_path / "a" / "notes" / "qrels").joinpath("test.tsv").write_text("query-id\tcorpus-id\tscore\n")
    with error_states("no record", "bm25 on notes"):
        find_record("bm25", str(tmp_path / "a" / "notes"), tmp_path / "results")


def test_a_system_and_a_dataset_without_a_query_are_answered_with_an_example(r2med: Command) -> None:
    shown = r2med("why", "bm25", "demo/Biology")
    assert shown.returncode == 2
    assert "name a record and a query, or a system, a dataset and a query" in shown.stderr


def test_without_a_record_the_printed_command_has_the_typed_folder(tmp_path: Path, r2med: Command) -> None:
    folder = r2med_folder(tmp_path / "my notes/Biology")
    assert r2med("run", "bm25", "--data", "demo/Biology").returncode == 0
    failed = r2med("why", "bm25", folder, "q1")
    assert failed.returncode == 2
    states(failed.stderr.splitlines()[-1], f"r2med run bm25 --data '{folder}'")
