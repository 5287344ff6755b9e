"""The door of the command line: signals and errors are one line, and any output can be written anywhere."""

import logging
import re
import signal
from pathlib import Path

import pytest

from r2med.cli import ORIGINAL_FLAGS, _log_to_stderr
from r2med.foundation.core.errors import UserError
from support import processes
from support.facts import states
from support.fork_server import Command
from support.processes import PATIENCE, Ended, ended, python, started

SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
STOPPED = {
    130: "r2med: stopped; the same command goes on from here",
    143: "r2med: stopped by SIGTERM; the same command goes on from here",
}

INTERRUPTED_IMPORT = """
import os, sys

def send(event, arguments):
    if event == "import" and arguments[0] == "typer" and not sent:
        sent.append(event)
        os.kill(os.getpid(), {number})

sent = []
sys.addaudithook(send)
from r2med.cli import main
main()
"""

VERB = """
import os, signal, sys, time, types

def app(**how):
    {body}

sys.modules["r2med.cli.app"] = types.SimpleNamespace(command=lambda: app)
{before}
from r2med.cli import main
main()
"""


def verb(body: str, before: str = "", **changes: str) -> Ended:
    """Run the command line with a verb of the test's own."""
    return python(VERB.format(body=body, before=before), **changes)


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_during_imports_is_one_line(number: signal.Signals, code: int) -> None:
    done = python(INTERRUPTED_IMPORT.format(number=int(number)), "list", "datasets")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "r2med: stopped\n")


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_during_work_is_one_line_and_its_exit_code(number: signal.Signals, code: int) -> None:
    done = verb(f"os.kill(os.getpid(), {int(number)}); time.sleep({PATIENCE})")
    assert (done.returncode, done.stderr.splitlines()) == (code, [STOPPED[code]])


def test_sigterm_stops_work_in_the_background_where_ctrl_c_is_ignored() -> None:
    done = verb(
        "os.kill(os.getpid(), signal.SIGINT); print('goes on', flush=True); "
        f"os.kill(os.getpid(), signal.SIGTERM); time.sleep({PATIENCE})",
        before="signal.signal(signal.SIGINT, signal.SIG_IGN)",
    )
    assert (done.returncode, done.stdout, done.stderr.splitlines()) == (143, "goes on\n", [STOPPED[143]])


@pytest.mark.parametrize(
    "fault",
    [
        "try: raise KeyboardInterrupt\n    except BaseException as stop: raise ImportError('numpy') from stop",
        "try: raise KeyboardInterrupt\n    except BaseException: raise RuntimeError('torch')",
    ],
)
def test_a_ctrl_c_of_which_a_library_made_another_error_is_one_line(fault: str) -> None:
    done = verb(fault)
    assert (done.returncode, done.stderr.splitlines()) == (130, [STOPPED[130]])


def test_a_ctrl_c_within_an_exec_ends_with_the_exit_code_too(tmp_path: Path) -> None:
    """As in dataclasses; `python -m` would end by the signal instead."""
    (tmp_path / "verb.py").write_text(VERB.format(body="exec('raise KeyboardInterrupt')", before=""))
    with started(["-m", "verb"], cwd=tmp_path) as process:
        done = ended(process)
    assert (done.returncode, done.stderr.splitlines()) == (130, [STOPPED[130]])


def test_a_fault_of_the_program_keeps_its_traceback() -> None:
    done = verb("raise ValueError('a fault')")
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback") and done.stderr.endswith("ValueError: a fault\n")


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "a -> b x ..."), ("cp1252", "a -> b × …")])
def test_any_text_is_printed_where_the_output_has_no_unicode(encoding: str, shown: str, tmp_path: Path) -> None:
    body = "\n    ".join(
        (
            "from r2med.cli.formats import console",
            "from r2med.foundation.pages.terminal import plain",
            "text = 'a → b × …'",
            "print(text)",
            "with console() as output:",
            "    output.print(plain(text))",
            "print('愛', file=sys.stderr)",
        )
    )
    done = verb(body, before=f"sys.stdout = open({str(tmp_path / 'out')!r}, 'w', encoding={encoding!r})")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text(encoding).splitlines() == [shown, shown]


def test_a_run_ends_with_its_table_where_the_output_is_ascii(tmp_path: Path) -> None:
    words = ("run", "hyde(author) → bm25", "--data", "demo/Biology", "--out", tmp_path / "out")
    done = processes.r2med(*words, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "hyde(author) -> bm25|" in done.stdout  # as wide as it is shown
    assert "hyde(author) -> bm25" in done.stderr


def test_a_command_without_a_verb_prints_its_help(r2med: Command) -> None:
    done = r2med("data")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage:" in done.stdout


def test_without_a_command_it_greets(r2med: Command) -> None:
    done = r2med()
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^  r2med (\w+)", done.stdout, re.MULTILINE) == ["run", "data", "advise", "run"]
    assert "data import notes.csv questions.csv" in done.stdout, "the files that data example makes"


def test_a_file_that_was_cut_is_not_called_stopped() -> None:
    # Typer turns every EOFError into what Ctrl-D gives.
    shown = verb("raise type('Abort', (RuntimeError,), {})() from EOFError('Compressed file ended')")
    assert shown.returncode == 2
    states(shown.stderr, "Compressed file ended")
    assert "stopped" not in shown.stderr


def test_a_full_disk_of_a_database_is_named() -> None:
    shown = verb("import sqlite3; raise sqlite3.OperationalError('database or disk is full')")
    assert shown.returncode == 2
    states(shown.stderr, "disk is full")


def test_closed_standard_streams_are_no_fault() -> None:
    before = "os.close(0); os.close(1); sys.stdin = sys.stdout = None"
    shown = verb("print(sys.stdout.isatty(), sys.stdin.read()); os.write(2, b'done')", before=before)
    assert (shown.returncode, shown.stderr) == (0, "done")


def test_log_lines_are_printed_as_notes(capsys, monkeypatch):
    logger = logging.getLogger("r2med")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "level", logger.level)
    _log_to_stderr()
    logger.warning("100 %% of %d: %s", 3, UserError("no GPU: use device (--device cpu)"))
    logger.warning("100 %")
    assert capsys.readouterr().err.splitlines() == [
        "note: 100 % of 3: no GPU: use device (--device cpu)",
        "note: 100 %",
    ]


@pytest.mark.parametrize("flag", ORIGINAL_FLAGS)
@pytest.mark.parametrize("words", [(), ("run",), ("generate", "hyde")])
def test_the_flags_of_the_benchmarks_own_code_lead_to_their_page(
    flag: str, words: tuple[str, ...], r2med: Command
) -> None:
    ended = r2med(*words, flag, "x")
    assert ended.returncode == 2
    states(ended.stderr, flag, "docs/from-r2med.md", ORIGINAL_FLAGS[flag])
    assert flag in (Path(__file__).parents[2] / "docs/from-r2med.md").read_text()
