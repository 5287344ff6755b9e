"""Command lines: the help page shows all commands, and wrong words name the nearest right one."""

import pytest

from r2med.cli.app import PANELS
from support.fork_server import Command


def test_help_shows_all_commands_in_panels(r2med: Command) -> None:
    shown = r2med("--help").stdout
    assert all(panel in shown for panel in PANELS)
    first = {line.strip("│ ").split(" ")[0] for line in shown.splitlines() if line.startswith("│")}
    assert {name for commands in PANELS.values() for name in commands} <= first


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
