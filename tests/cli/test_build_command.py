"""`r2med build`: the shipped examples run end to end, and what they left can be looked at."""

import json
import shutil
from pathlib import Path

import pytest

from r2med.construction.review_items import review_items
from support.commands import run_here
from support.facts import each_states, some_states, states


@pytest.mark.parametrize(("name", "queries"), [("forum", 6), ("exam", 4), ("cases", 5)])
def test_an_example_becomes_a_dataset_that_is_evaluated_with_the_network_off(tmp_path, r2med, name, queries):
    some_states(r2med("build", "example", name, "-o", "example").stdout.splitlines(), "a person")
    built = r2med("build", "run", "example/plan.toml", "-o", "built", "--offline")
    assert built.returncode == 0, built.stderr
    some_states(built.stdout.splitlines(), f"r2med run bm25 --data built/{name}-example")
    assert "no model" in (tmp_path / f"built/{name}-example/datasheet.html").read_text("utf-8")
    assert f"built/{name}-example: sound" in r2med("data", "check", f"built/{name}-example").stdout
    assert f"1 dataset, {queries} queries" in r2med("run", "bm25", "--data", f"built/{name}-example").stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for words in (("example", "exam", "-o", "example"), ("run", "example/plan.toml", "-o", "built")):
        assert run_here("build", *words, cwd=folder, R2MED_HOME=folder / "r2med-home").returncode == 0
    return folder


@pytest.fixture
def built(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_a_build_without_a_dataset_says_why(tmp_path, r2med):
    (tmp_path / "q.jsonl").write_text('{"id": "q", "question": "Fever?", "answer": "Rest"}\n')
    (tmp_path / "t.jsonl").write_text('{"id": "p", "title": "", "text": "Water helps."}\n')
    steps = ["read-table(q.jsonl)", "read-textbook(t.jsonl)", "chunk"]
    (tmp_path / "plan.toml").write_text(f'name = "x"\nsteps = {steps}\n')
    run = r2med("build", "run", "plan.toml", "-o", "out")
    some_states(run.stdout.splitlines(), "No dataset", "judges")
    assert run.returncode == 0
    steps += ["mine(committee=bm25)", "judge(smollm2)"]
    (tmp_path / "plan.toml").write_text(f'name = "x"\nsteps = {steps}\n')
    run = r2med("build", "run", "plan.toml", "-o", "out")
    some_states(run.stdout.splitlines(), "no candidate", "step 4", "mine(committee=bm25)")


def test_what_each_step_kept_and_left_out_is_shown(built, r2med):
    status = r2med("build", "show", "built")
    assert "1 Too Simple, 1 Ambiguous Answer" in status.stdout
    steps = json.loads(r2med("build", "show", "built", "--format", "json").stdout)
    assert [step["kept"] for step in steps][:4] == [9, 8, 6, 5]
    rejected = r2med("build", "show", "built", "--step", 3, "--rejected").stdout
    some_states(rejected.splitlines(), "e5", "Too Simple", "One fact is enough.")
    assert r2med("build", "show", "built", "--step", 1, "-n", 2).stdout.count("  text: ") == 2
    trace = r2med("build", "show", "built", "e7").stdout
    some_states(trace.splitlines(), "4. drop-easy", "e7", "Answered By Small Models", "scripted")


def test_a_dry_run_tells_calls_tokens_and_dollars_of_every_step_and_asks_nothing(tmp_path, r2med):
    r2med("build", "example", "exam", "-o", "example")
    plan = r2med("build", "run", "-o", "built", "example/plan.toml", "--plan", "--llm", "gpt4")
    assert plan.returncode == 0, plan.stderr
    line = next(line for line in plan.stdout.splitlines() if "label-kind" in line)
    calls, most_calls, prompt, completion, dollars, most = line.split()[2:]
    assert (calls, most_calls, completion) == ("9", "27", "3,600")
    assert int(prompt.replace(",", "")) > 1000
    assert 0 < float(dollars) < float(most)
    assert not (tmp_path / "built").exists()


def test_a_dry_run_does_not_add_up_what_is_unknown_to_nothing(r2med):
    r2med("build", "example", "exam", "-o", "example")
    plan = Path("example/plan.toml")
    words = ("build", "run", "-o", "built", plan, "--plan", "--llm", "gpt4")
    with_judges = r2med(*words).stdout
    assert with_judges.split("together")[1].split()[:3] == ["unknown"] * 3
    assert "mine has not collected" in with_judges
    plan.write_text("".join(line for line in plan.read_text().splitlines(True) if "judge(" not in line))
    unpriced = plan.read_text().replace('"label-kind"', '"label-kind(qwen-7b)"')
    assert float(r2med(*words).stdout.split("together")[1].split()[4]) > 0
    plan.write_text(unpriced)
    assert r2med(*words, "--base-url", "http://127.0.0.1:9").stdout.split("together")[1].split()[4:6] == ["unknown"] * 2


def test_a_dataset_without_the_latest_reviews_is_said_to_be_so_until_it_is_built_again(built, r2med, tmp_path):
    assert "lacks reviews" not in r2med("build", "show", "built").stdout
    item = review_items(tmp_path / "built")[0]
    row = {"question": item.id[0], "chunk": item.id[1], "annotator": "Ann", "verdict": "reject"}
    (tmp_path / "in.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    imported = r2med("review", "import", "built", "in.csv").stdout
    again = "r2med build run PLAN.toml -o built"
    each_states(imported.splitlines(), (1, "in.csv"), ("built/exam-example", again))
    some_states(
        r2med("build", "show", "built").stdout.splitlines(), "built/exam-example", "lacks reviews", "r2med build"
    )
    counted = json.loads(r2med("review", "show", "built", "--format", "json").stdout)
    titles = ["Agreement of reviewers", "Agreement of judges", "Who reviewed"]
    assert [section["title"] for section in counted["sections"]][1:] == titles
    r2med("build", "run", "example/plan.toml", "-o", "built")
    assert "lacks reviews" not in r2med("build", "show", "built").stdout


def test_a_plan_that_somebody_wrote_is_not_replaced_by_a_copy(built, r2med, tmp_path):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "plan.toml").write_text("mine = 1")
    ended = r2med("build", "run", "example/plan.toml", "-o", "plans")
    assert ended.returncode == 2
    states(ended.stderr, "plans/plan.toml", "different plan")
    assert (tmp_path / "plans" / "plan.toml").read_text() == "mine = 1"


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("run", "no.toml", "-o", "x"), ["no.toml"]),
        (("show", "nowhere"), ["nowhere", "build"]),
        (("show", "built", "zz"), ["'zz'", "built"]),
        (("show", "built", "--step", "99"), ["step 99", 14]),
        (("example", "exm", "-o", "x"), ["'exm'", "exam?"]),
        (("example", "exam", "-o", "built"), ["built", "exists"]),
        (("run", "example/plan.toml", "-o", "x", "--offline", "--llm", "gpt4"), ["offline", "gpt4"]),
    ],
)
def test_what_cannot_be_done_is_one_line(built, r2med, words, facts):
    ended = r2med("build", *words)
    assert ended.returncode == 2
    states(ended.stderr.splitlines()[-1], *facts)
