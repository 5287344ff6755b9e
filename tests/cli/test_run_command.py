"""The commands as a person types them: output, exit codes, one line for each error."""

from __future__ import annotations

import importlib.util
import json
import socket
from pathlib import Path

import pytest

from support import processes
from support.by_day import some_by_day
from support.datasets import r2med_folder, write_jsonl
from support.facts import some_states, states
from support.fork_server import Command

FACTS = Path(__file__).parents[1] / "evaluation/measure/trec_eval"


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, processes.r2med("run", cwd=folder, R2MED_HOME=folder / "home", COLUMNS="120")


def test_run_without_arguments_evaluates_the_demo_and_prints_a_table(demo_run):
    folder, done = demo_run
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    heads = next(line for line in lines if line.split()[:1] == ["system"])
    assert heads.split() == ["system", "Bio", "Bioinf", "MedSci", "Exam", "Diag", "Treat", "PMC", "IIYi", "Avg"]
    assert sum(line.startswith("bm25 ") for line in lines) == 1
    assert sum(line.startswith("hyde(author) → bm25 ") for line in lines) == 1
    assert not [line for line in lines if line.startswith(("cost", "aspects", "average by task", "p50", "dollars"))]
    assert "24 records" in done.stdout
    assert "Next" in done.stdout
    assert len(list(folder.glob("results/demo/*/*.json"))) == 24
    assert len(list(folder.glob("results/demo/*/*.trec.gz"))) == 24


def test_the_readme_shows_what_the_demo_prints_first(demo_run):
    _, done = demo_run
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    block = readme.partition("and prints:\n\n```\n")[2].partition("```")[0]
    shown, printed = ([line for line in text.splitlines() if line] for text in (block, done.stdout))
    assert len(shown) > 3 and printed[: len(shown)] == shown
    assert "Next" in "".join(printed[len(shown) :]) and len(printed) <= len(shown) + 5


def test_all_tables_are_by_dataset_by_task_by_the_aspects_of_one_dataset_and_what_it_took(demo_run, r2med):
    folder, _ = demo_run
    lines = r2med("run", "--all-tables", cwd=folder, R2MED_HOME=folder / "home").stdout.splitlines()
    assert sum(line.startswith("bm25 ") for line in lines) == 4
    assert sum(line.startswith("hyde(author) → bm25 ") for line in lines) == 4
    sorted_by_cost = r2med("run", "--sort", "tokens", cwd=folder, R2MED_HOME=folder / "home").stdout
    assert "LLM tokens" in sorted_by_cost, "rows are not sorted by a column that is not there"


def test_every_format_of_a_file_has_all_tables(demo_run, r2med):
    folder, _ = demo_run
    page = r2med("run", "--format", "markdown", cwd=folder, R2MED_HOME=folder / "home").stdout
    assert "LLM tokens" in page and "average by task" in page


def test_the_table_averages_what_the_records_say(demo_run):
    folder, done = demo_run
    records = [json.loads(path.read_text()) for path in folder.glob("results/demo/*/bm25-*.json")]
    average = sum(record["mean"]["nDCG@10"] for record in records) / 8
    row = next(line for line in done.stdout.splitlines() if line.strip().startswith("bm25 "))
    assert row.split()[-1] == f"{100 * average:.2f}"


def test_running_again_reuses_the_records_and_says_so(demo_run, r2med):
    folder, _ = demo_run
    again = r2med("run", cwd=folder, R2MED_HOME=folder / "home")
    some_states(again.stdout.splitlines(), "24 of them", "reused")
    fresh = r2med("run", "bm25", "--data", "demo/Biology", "--fresh", cwd=folder, R2MED_HOME=folder / "home")
    assert "reused" not in fresh.stdout


def test_run_as_json_is_data_alone(tmp_path, r2med):
    done = r2med("run", "bm25", "--data", "demo/Biology,demo/MedQA-Diag", "--out", tmp_path, "--format", "json")
    rows = json.loads(done.stdout)
    assert [row["dataset"] for row in rows] == ["demo/Biology", "demo/MedQA-Diag"]
    assert all(0 <= row["mean"]["nDCG@10"] <= 1 for row in rows)


@pytest.mark.parametrize(
    "arguments", some_by_day([["run", "--data", "Biolgy"], ["list", "datasets"], ["rnu"], ["show"]], 4)
)
def test_a_forked_command_says_what_a_started_one_says(tmp_path, arguments, r2med):
    """What the tests that take the fixture rest on."""
    there, here = r2med(*arguments), processes.r2med(*arguments, cwd=tmp_path)
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def test_a_forked_run_writes_what_a_started_one_writes(demo_run, tmp_path, r2med):
    folder, _ = demo_run
    [row] = json.loads(r2med("run", "bm25", "--data", "demo/Biology", "--format", "json").stdout)
    [path] = tmp_path.glob("results/demo/Biology/*.json")
    record = json.loads((folder / path.relative_to(tmp_path)).read_text())
    assert (row["key"], row["mean"]) == (record["key"], record["mean"])


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["run", "bm26"], ["bm26", "bm25?"]),
        (["run", "bm25", "--data", "Biolgy"], ["Biolgy", "Biology?"]),
        (["run", "bm25", "--data", "../x"], ["'../x'", "no dataset"]),
        (["run", "bm25", "--data", "demo/../../x"], ["'demo/../../x'", "no dataset"]),
        (["run", "bm25", "--k", "0"], ["k", "at least 1"]),
        (["run", "bm25", "--k", "many"], ["--k", "integer"]),
        (["run", "--measure", "nDGC@10"], ["nDGC@10", "nDCG@10?"]),
        (["rnu"], ["rnu", "run"]),
        (["run", "--dta", "demo"], ["--dta", "--data"]),
        (["score", "--qrels", "nowhere", "--run", "x"], ["nowhere", "no such qrels"]),
        (["score", "--qrels", FACTS / "qrels.txt", "--run", "nowhere"], ["nowhere", "no such run"]),
        (["score", "--qrels", FACTS / "run.txt", "--run", FACTS / "run.txt"], ["run.txt:1", "6 columns"]),
        (["data", "check", "nowhere"], ["'nowhere'", "no dataset"]),
        (["show", "bad\x1b[31mname"], [r"bad\x1b[31mname"]),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tmp_path, arguments, facts, r2med):
    done = r2med(*arguments)
    assert done.returncode == 2, done.stderr
    states(done.stderr, *facts)
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr
    assert not list(tmp_path.rglob("*.json"))


def test_results_that_cannot_be_written_fail_before_the_work(tmp_path, r2med):
    (tmp_path / "file").write_text("in the way")
    done = r2med("run", "bm25", "--data", "demo", "--out", tmp_path / "file" / "results")
    assert done.returncode == 2
    states(done.stderr, "cannot write", tmp_path / "file")


def folder_of(place, query, document):
    place.mkdir(parents=True)
    (place / "query.jsonl").write_text(json.dumps({"id": query, "text": "fever"}) + "\n")
    rows = [{"id": document, "text": "fever and cough"}, {"id": "other", "text": "fever fever"}]
    (place / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "qrels.jsonl").write_text(json.dumps({"q_id": query, "p_id": document, "score": 1}) + "\n")
    return place


def test_two_folders_of_one_name_both_count_in_the_average(tmp_path, r2med):
    first, second = folder_of(tmp_path / "A" / "x", "1", "d"), folder_of(tmp_path / "B" / "x", "1", "d")
    (second / "qrels.jsonl").write_text('{"q_id": "1", "p_id": "other", "score": 1}\n')
    done = r2med("run", "bm25", "--data", first, "--data", second, "--out", tmp_path / "out")
    row = next(line for line in done.stdout.splitlines() if line.startswith("bm25"))
    one, two, average = map(float, row.split()[1:])
    assert one != two
    assert average == pytest.approx((one + two) / 2, abs=0.011)


def test_what_the_qrels_name_and_is_not_there_is_told(tmp_path, r2med):
    folder = folder_of(tmp_path / "set", "1", "d")
    with (folder / "qrels.jsonl").open("a") as file:
        file.write('{"q_id": "zz", "p_id": "d", "score": 1}\n{"q_id": "1", "p_id": "gone", "score": 1}\n')
    done = r2med("run", "bm25", "--data", folder, "--out", tmp_path / "out")
    some_states(done.messages, "qrels", "1 query", "1 relevant document", "absent")


def test_a_measure_that_records_lack_is_refused_before_the_work(tmp_path, r2med):
    done = r2med("run", "bm25", "--measure", "nDCG@7", "--out", tmp_path / "out")
    assert done.returncode == 2
    states(done.stderr, "records", "nDCG@7")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
@pytest.mark.parametrize("engine", ["ray", "ray://"])
def test_a_missing_cluster_gives_a_one_line_error(engine, r2med):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        words = ("run", "bm25", "--data", "demo/MedQA-Diag", "--engine")
        end = r2med(*words, engine if engine == "ray" else f"{engine}{address}", RAY_ADDRESS=address)
    assert end.returncode == 2
    states(end.messages[-1], "no Ray cluster", f"{'' if engine == 'ray' else engine}{address}")


def test_the_run_says_so_and_shows_the_data_as_the_users_own(tmp_path: Path, r2med: Command) -> None:
    write_jsonl(r2med_folder(tmp_path / "Biology") / "notes.jsonl", [])
    done = r2med("run", "bm25", "--data", tmp_path / "Biology", "--out", tmp_path / "results")
    some_states(done.messages, tmp_path / "Biology", "own/Biology", "known dataset Biology")
    assert "own/Biology" in done.stdout
    assert list((tmp_path / "results/own/Biology").glob("bm25-*.json"))


def test_rows_are_sorted_by_the_name_of_a_folder_as_the_table_shows_it(tmp_path: Path, r2med: Command) -> None:
    folder = folder_of(tmp_path / "ward", "1", "d")
    words = ("run", "bm25(b=0)", "bm25", "--data", folder, "--out", tmp_path / "out", "--sort")
    done = r2med(*words, "ward")
    assert done.returncode == 0, done.stderr
    heads = next(line for line in done.stdout.splitlines() if line.startswith("system"))
    assert heads.split() == ["system", "ward"]
    wrong = r2med(*words, tmp_path / "nowhere")
    assert wrong.returncode == 2
    states(wrong.stderr, "no order", "nowhere")
