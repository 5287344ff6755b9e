"""`r2med analyse`."""

from pathlib import Path

from support.facts import some_states
from support.fork_server import Command


def test_records_are_analysed_and_the_page_is_named(r2med: Command, tmp_path: Path) -> None:
    r2med("run", "bm25", "rm3 → bm25", "--data", "demo/Biology")
    done = r2med("analyse", "reliability", "complementarity", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "cannot be detected reliably" in done.stdout
    some_states(done.stdout.splitlines(), "out/index.html")
    assert (tmp_path / "out/complementarity-pairs.csv").is_file()


def test_a_dry_run_asks_nothing_and_writes_nothing(r2med: Command, tmp_path: Path) -> None:
    done = r2med("analyse", "contamination", "--llm", "gpt4", "--data", "demo/Biology", "--queries", "3", "--plan")
    assert done.returncode == 0, done.stderr
    assert "asks an LLM about 6 times, at most 18" in done.stdout and "prompt of continue" in done.stdout
    assert not (tmp_path / "analysis").exists()


def test_analyses_are_listed_and_a_wrong_name_is_one_line(r2med: Command) -> None:
    assert "complementarity" in r2med("list", "analyses").stdout
    wrong = r2med("analyse", "overlop")
    assert wrong.returncode == 2
    assert "overlap" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_a_group_is_all_of_its_datasets(r2med: Command) -> None:
    done = r2med("analyse", "overlap", "--data", "demo", "--data", "demo/Biology", "--format", "csv", "-o", "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("demo/IIYi-Clinical") == done.stdout.count("demo/Biology") > 0
