"""Command lines: the help page shows all commands, and wrong words name the nearest right one."""

import pytest

from r2med.cli.app import PANELS
from support.facts import states
from support.fork_server import Command


def test_help_shows_all_commands_in_panels(r2med: Command) -> None:
    shown = r2med("--help").stdout
    assert all(panel in shown for panel in PANELS)
    first = {line.strip("│ ").split(" ")[0] for line in shown.splitlines() if line.startswith("│")}
    assert {name for commands in PANELS.values() for name in commands} <= first
    assert shown.index("Measure systems") < shown.index("Search your own data") < shown.index("Build and check")


def test_no_help_page_shows_a_type_of_python(r2med: Command) -> None:
    for words in ("", "run", "compare", "serve", "search", "data import", "records export", "build run"):
        command = words.split()
        page = r2med(*command, "--help-all" if words in ("run", "compare", "serve") else "--help").stdout
        assert "--help" in page
        assert not [name for name in ("bool", "str", "int", "float", "path", "list") if f"<{name}" in page.lower()]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (
            ["run", "--dta", "x"],
            ["--dta", "--data?", "r2med run --help"],
        ),
        (["data", "chek"], ["chek", "check?", "r2med data --help"]),
        (["import", "notes.csv"], ["import", "data import", "records import", "r2med --help"]),
        (["xyzzy"], ["xyzzy", "r2med --help"]),
        (["run", "bm25", "--llm"], ["'--llm'", "argument", "--help"]),
        (["verify"], ["'ENTRY'", "r2med verify --help"]),
    ],
)
def test_wrong_words_name_the_nearest_right_one_and_the_help_page(
    words: list[str], facts: list[str], r2med: Command
) -> None:
    done = r2med(*words)
    assert done.returncode == 2
    states(done.stderr, "r2med:", *facts)


def test_a_traceback_is_shown_on_demand(r2med: Command) -> None:
    done = r2med("run", "nosuch", R2MED_DEBUG="1")
    assert done.returncode == 2
    assert done.stderr.startswith("Traceback") and "r2med: no " in done.stderr.splitlines()[-1]


def test_the_commands_that_most_people_need_come_first() -> None:
    first, *_ = PANELS.values()
    assert list(first)[:3] == ["run", "compare", "board"]
