"""Words of earlier versions work, with one line on stderr that gives the new ones; help does not show them."""

import json
from pathlib import Path

import pytest

from r2med.cli.app import PANELS
from r2med.cli.old_words import renewed
from support.fork_server import Command


@pytest.mark.parametrize(
    ("old", "new", "notice"),
    [
        ("models list", "list models", "r2med models list is now r2med list models"),
        ("llms show o3-mini", "show --kind llms o3-mini", "r2med llms show is now r2med show NAME"),
        ("stages show bm25 --json", "show --kind stages bm25 --json", "r2med stages show is now r2med show NAME"),
        ("prompts list", "list prompts", "r2med prompts list is now r2med list prompts"),
        ("import notes.csv -o mine", "data import notes.csv -o mine", "r2med import is now r2med data import"),
        ("import mteb x.json", "records import x.json", "r2med import mteb is now r2med records import"),
        (
            "export runs bm25",
            "records export --format runs bm25",
            "r2med export runs is now r2med records export --format runs",
        ),
        ("build plan.toml -o x", "build run plan.toml -o x", "r2med build PLAN is now r2med build run PLAN"),
        ("run bm25 --dry-run", "run bm25 --plan", "--dry-run is now --plan"),
        ("analyse --depth=3", "analyse --passages=3", "--depth is now --passages"),
        ("analyse overlap --by minilm", "analyse overlap --model minilm", "--by is now --model"),
        ("analyse --list --json", "list analyses --json", "r2med analyse --list is now r2med list analyses"),
        ("serve demo --deadline 9", "serve demo --timeout 9", "--deadline is now --timeout"),
        ("run bm25 --model a:B -k 5", "run bm25 py:a:B -k 5", "--model MODULE:NAME is now the system py:MODULE:NAME"),
        ("run --model=a:B", "run py:a:B", "--model MODULE:NAME is now the system py:MODULE:NAME"),
        (
            "search x y --idle 9",
            "search x y --idle 9",
            "--idle goes away: Setup(idle=SECONDS) sets it in Python",
        ),
    ],
)
def test_old_words_become_new_ones(old: str, new: str, notice: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert renewed(old.split()) == new.split()
    assert capsys.readouterr().err == f"note: {notice}; the old form works until 2.0\n"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "run bm25 --depth 5",
        "build status x",
        "data import x",
        "search x -- --dry-run",
        "advise x --model minilm",
        "run bm25 --deadline 9",
        "prompts new hyde",
    ],
)
def test_words_of_today_are_left_alone(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert renewed(words.split()) == words.split()
    assert capsys.readouterr().err == ""


def test_an_old_command_prints_what_the_new_one_prints(r2med: Command) -> None:
    old, new = r2med("llms", "list", "--json"), r2med("list", "llms", "--json")
    assert old.stdout == new.stdout and new.stderr == ""
    assert old.stderr == "note: r2med llms list is now r2med list llms; the old form works until 2.0\n"


def test_help_shows_commands_in_panels_without_old_words(r2med: Command) -> None:
    shown = r2med("--help").stdout
    assert all(panel in shown for panel in PANELS)
    first = {line.strip("│ ").split(" ")[0] for line in shown.splitlines() if line.startswith("│")}
    assert {name for commands in PANELS.values() for name in commands} <= first
    assert not first & {"import", "export", "llms", "stages"}


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["run", "--dta", "x"],
            "r2med: no option --dta for r2med run: did you mean --data? r2med run --help lists them",
        ),
        (["data", "chek"], "r2med: no command chek in r2med data: did you mean check? r2med data --help lists them"),
        (["xyzzy"], "r2med: no command xyzzy in r2med: r2med --help lists them"),
        (["run", "bm25", "--llm"], "r2med: Option '--llm' requires an argument (r2med --help shows how it is used)"),
        (["verify"], "r2med: Missing argument 'ENTRY' (r2med verify --help shows how it is used)"),
    ],
)
def test_wrong_words_name_the_nearest_right_one_and_the_help_page(words: list[str], line: str, r2med: Command) -> None:
    done = r2med(*words)
    assert (done.returncode, done.stderr) == (2, f"{line}\n")


def test_a_traceback_is_shown_on_demand(r2med: Command) -> None:
    done = r2med("run", "nosuch", R2MED_DEBUG="1")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback") and "r2med: no " in done.stderr.splitlines()[-1]


def test_flags_that_go_away_work_and_are_not_in_the_help_pages(r2med: Command, tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 a 1\n")
    (tmp_path / "run").write_text("q Q0 a 1 1.00000001 t\nq Q0 b 2 1.0 t\n")
    files = ("score", "--qrels", "qrels", "--run", "run", "--json")
    floats, doubles = (json.loads(r2med(*files, *more).stdout)["mean"]["MRR"] for more in ((), ("--doubles",)))
    assert (floats, doubles) == (0.5, 1.0)  # as floats the scores are equal, and a tie goes to the larger id
    shown = r2med("run", "--help", COLUMNS="300").stdout + r2med("score", "--help", COLUMNS="300").stdout
    assert not {"--idle", "--batch-tokens", "--doubles"} & set(shown.split())
