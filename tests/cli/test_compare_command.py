"""`r2med compare`: sentences for a person, tables for a paper, JSON for a program."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from r2med.data.dataset_cards import BENCHMARK, groups
from support.facts import some_states, states
from support.fork_server import Command
from support.records import records, repeated, write_records

SYSTEMS = {"bm25": 0.3, "rm3 → bm25": 0.305, "hyde(author) → bm25": 0.5}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_records(records(SYSTEMS, {"Biology": 40, "PMC-Clinical": 25}), tmp_path / "results")


@pytest.mark.usefixtures("results")
def test_a_person_reads_verdicts_and_what_can_be_detected(r2med: Command) -> None:
    text = r2med(
        "compare", "hyde(author) → bm25", "bm25", "--resamples", "500", "--slice", "task"
    ).stdout  # which shows pairs
    some_states(text.splitlines(), "hyde(author) → bm25", "better", "bm25: +")
    some_states(text.splitlines(), "65 queries", "80 % power")
    some_states(text.splitlines(), "Wins", "losses")
    assert "Q&A reference (40)" in text
    assert "rm3" not in text


@pytest.mark.usefixtures("results")
def test_the_table_goes_the_way_of_the_sentence_in_either_order(r2med: Command) -> None:
    pair = ("hyde(author) → bm25", "bm25")
    one, other = (
        r2med("compare", *each, "--slice", "task", "--resamples", "100").stdout for each in (pair, pair[::-1])
    )
    better = "hyde(author) → bm25 is better"  # no fact of the message: it marks where the verdict begins
    tail = one[one.index(better) :]
    some_states(tail.splitlines(), "hyde(author) → bm25 minus bm25", "interval of this pair alone")
    assert tail == other[other.index(better) :].replace(
        "between bm25 and hyde(author) → bm25", "between hyde(author) → bm25 and bm25"
    )


def test_the_text_says_how_often_each_system_was_run(r2med: Command, tmp_path: Path) -> None:
    systems = {"often(x)": (0.5, 3), "once(x)": (0.4, 1), "bm25": (0.3, -1)}
    write_records(repeated(systems, {"Biology": 30}), tmp_path / "results")
    text = r2med("compare", "--data", "Biology", "--resamples", "100", "--pairs").stdout
    assert "deterministic" in text and "one run" in text and "3 runs" in text


@pytest.mark.usefixtures("results")
def test_runs_of_systems_without_chance_are_not_mentioned(r2med: Command) -> None:
    for words in ((), ("--pairs",), ("--format", "html")):
        text = r2med("compare", "hyde(author) → bm25", "bm25", "--resamples", "100", *words).stdout
        assert "deterministic" not in text


@pytest.mark.usefixtures("results")
def test_pairs_are_counted_at_first_and_each_is_shown_on_request(r2med: Command) -> None:
    first = r2med("compare", "--resamples", "100").stdout
    some_states(first.splitlines(), "2 of 3 pairs", "--pairs")
    assert "is better than" not in first
    shown = r2med("compare", "--resamples", "100", "--pairs").stdout
    assert sum("adjusted for 3 pairs" in line for line in shown.splitlines()) == 3
    whole = r2med("compare", "--resamples", "100", "--format", "html").stdout
    assert whole.count("adjusted for 3 pairs") == 3


@pytest.mark.usefixtures("results")
def test_one_pair_and_each_pair_with_a_baseline_have_a_verdict_at_first(r2med: Command) -> None:
    one = r2med("compare", "hyde(author) → bm25", "bm25", "--resamples", "100").stdout
    some_states(one.splitlines(), "hyde(author) → bm25", "better", "bm25: +")
    assert "Wins" not in one
    several = r2med("compare", "--baseline", "bm25", "--resamples", "100").stdout
    assert sum("adjusted for 2 pairs" in line for line in several.splitlines()) == 2
    assert "shows each" not in several
    some_states(several.splitlines(), "of 2 pairs differ: --pairs also shows their wins and losses.")


def test_five_systems_on_eight_datasets_take_24_lines_of_a_terminal(r2med: Command, tmp_path: Path) -> None:
    names = ("bm25", "rm3 → bm25", "bm25(k1=2)", "bm25(scorer=lucene)", "hyde(author) → bm25")
    datasets = groups()[BENCHMARK]
    made = records({name: 0.2 + 0.05 * number for number, name in enumerate(names)}, dict.fromkeys(datasets, 10))
    write_records(made, tmp_path / "results")
    lines = r2med("compare", "--resamples", "100", COLUMNS="80").stdout.splitlines()
    assert len(datasets) == 8 and len(lines) <= 24


def test_a_system_that_was_run_on_other_data_is_left_out(r2med: Command, tmp_path: Path) -> None:
    write_records(records({"bm25": 0.3, "rm3 → bm25": 0.4}, {"Biology": 40}), tmp_path / "results")
    write_records(records({"minilm": 0.3}, {"PMC-Clinical": 40}), tmp_path / "results")
    text = r2med("compare", "--data", "Biology", "--resamples", "100").stdout
    some_states(text.splitlines(), "minilm", "left out", "Biology")
    some_states(text.splitlines(), "rm3 → bm25", "better", "bm25")


@pytest.mark.usefixtures("results")
def test_json_has_every_pair_of_the_folder(r2med: Command) -> None:
    content = json.loads(r2med("compare", "--format", "json", "--resamples", "100").stdout)
    assert sorted(content["systems"]) == sorted(SYSTEMS)
    assert len(content["pairs"]) == 3
    assert set(content) >= {"systems", "pairs", "detectable_gap"}


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(("data", "queries"), [("Biology", 40), ("Biology, PMC-Clinical", 65)])
def test_datasets_are_named_with_commas_and_spaces(r2med: Command, data: str, queries: int) -> None:
    text = r2med("compare", "hyde(author) → bm25", "bm25", "--data", data, "--resamples", "100").stdout
    some_states(text.splitlines(), f"{queries} queries", "difference")


@pytest.mark.usefixtures("results")
def test_tables_for_papers_have_all_pairs(r2med: Command) -> None:
    def table(form: str) -> str:
        return r2med("compare", "--baseline", "bm25", "--format", form, "--resamples", "100").stdout

    assert table("markdown").startswith("| A | B | on |")
    assert r"rm3 $\rightarrow$ bm25 & bm25 & all datasets" in table("latex")
    rows = list(csv.DictReader(io.StringIO(table("csv"))))
    assert len(rows) == 2 * 3
    assert {row["B"] for row in rows} == {"bm25"}
    assert float(rows[0]["p"]) <= 1


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("bm25",), "two systems"),
        (("bm25", "rm3 -> bm26"), "rm3 → bm25?"),
        (("--results", "nowhere"), "nowhere"),
        (("--measure", "nDCG@11"), "nDCG@11"),
        (("--slice", "bodysystem"), "body-system?"),
        (("--baseline", "bm2"), "bm25?"),
        (("--format", "word"), "text, markdown, latex, csv"),
    ],
)
def test_what_cannot_be_compared_is_one_line(r2med: Command, words: tuple[str, ...], fact: str) -> None:
    done = r2med("compare", *words)
    assert done.returncode == 2
    states(done.stderr, fact)


def test_many_systems_are_ranked_and_marked(r2med: Command, tmp_path: Path) -> None:
    made = records({f"system-{n}": 0.2 + 0.05 * n for n in range(7)}, {"Biology": 30})
    write_records(made, tmp_path / "results")
    text = r2med("compare", "--resamples", "200").stdout
    assert text.index("system-6") < text.index("system-0")
    some_states(text.splitlines(), "21 pairs", "--pairs")
    some_states(text.splitlines(), "21 pairs were tested")
    against = r2med("compare", "--baseline", "system-6", "--resamples", "200").stdout
    some_states(against.splitlines(), "system-6", "best", "no lock", "21 pairs")
    some_states(against.splitlines(), "system-0", "worse")


@pytest.mark.usefixtures("results")
def test_a_report_is_written_and_its_files_are_told(r2med: Command, tmp_path: Path) -> None:
    done = r2med("compare", "results", "-o", "paper", "--baseline", "bm25", "--resamples", "100")
    some_states(done.stdout.splitlines(), "7 files", "paper/", "table, pairs, scores")
    assert len(list((tmp_path / "paper").iterdir())) == 7
    (tmp_path / "file").write_text("")
    refused = r2med("compare", "-o", "file")
    assert refused.returncode == 2
    states(refused.stderr, "file", "folder")


@pytest.mark.usefixtures("results")
@pytest.mark.parametrize(
    ("new", "old", "points", "code", "outcome"),
    [
        ("bm25", "hyde(author) → bm25", "1", 1, "worse"),
        ("rm3 → bm25", "bm25", "0", 3, "not decided"),
        ("hyde(author) → bm25", "bm25", "1", 0, "passed"),
    ],
)
def test_the_gate_is_an_exit_code_and_one_line(
    r2med: Command, new: str, old: str, points: str, code: int, outcome: str
) -> None:
    for form in ("text", "json"):
        done = r2med("compare", new, old, "--baseline", old, "--worse-than", points, "--format", form)
        assert done.returncode == code, done.stderr
        assert outcome in done.stdout
    assert [each["outcome"] for each in json.loads(done.stdout)["gate"]] == [outcome]
