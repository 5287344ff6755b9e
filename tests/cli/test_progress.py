"""Progress: what is told of long work, on a terminal and in a plain log."""

import io
import re
import threading

import pytest

from r2med.cli import progress as shown
from r2med.cli.progress import Clock, steps, words
from r2med.foundation.engine.reporting import Progress, Reporter

LONG = (
    "a-very-long-name-of-a-dataset · hyde(o3-mini, rounds=1) → fuse(bm25+diver, weights=3:1) → groupwise(o3-mini)@100"
)


class Terminal(io.StringIO):
    """Takes what a terminal would show."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        return re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue()))


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> Terminal:
    """Let stderr be a terminal; not in a fixture, since pytest puts its own stderr back before the test."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    return screen


@pytest.mark.parametrize(
    ("seconds", "pace"), [(0.005, "1,200/s"), (0.8, "8/s"), (6.0, "1/s"), (12.0, "30/min"), (180.0, "2/min")]
)
def test_slow_work_is_told_by_the_minute(seconds: float, pace: str) -> None:
    assert pace in words(Progress("answers", done=8, total=20, before=2, seconds=seconds))


def test_a_line_tells_how_far_work_is_and_how_long_it_will_take() -> None:
    told = words(Progress("documents", done=4000, total=57_000, before=0, seconds=10.0))
    assert told == "4,000 of 57,000 documents, 400/s, 2:12 left"
    assert words(Progress("documents", 0, 40_000, 0, 10.0)) == "0 of 40,000 documents, 0/min"
    assert words(Progress("answers", 1, 101, 0, 60.0)).endswith("1:40:00 left")
    assert words(Progress("answers", 1, 9971, 0, 60.0)).endswith(", 7 days left")


class Watch:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_no_time_is_left_to_say_while_finished_items_are_asked_about_again() -> None:
    assert words(Progress("answers", 100, 100, 0, 60.0)) == "100 of 100 answers, 2/s"


def test_the_time_left_counts_the_steps_to_come() -> None:
    watch = Watch()
    clock = Clock(total=4, now=watch)
    assert clock.seconds_left(None) is None
    clock.next()
    assert clock.seconds_left(None) is None  # nothing is known of the first step yet
    watch.time = 10.0
    half = Progress("documents", done=50, total=100, before=0, seconds=10.0)
    assert clock.seconds_left(half) == pytest.approx(10 + 3 * 20)
    watch.time = 30.0
    clock.next()
    assert (clock.done, clock.number) == (1, 2)
    assert clock.seconds_left(None) == pytest.approx(3 * 30)
    watch.time = 40.0
    assert clock.seconds_left(None) == pytest.approx(20 + 2 * 30)


def test_steps_that_were_read_back_say_nothing_about_those_to_come() -> None:
    watch = Watch()
    clock = Clock(total=12, now=watch)
    for time in (0.0, 0.01, 0.02, 60.02):
        watch.time = time
        clock.next()
    assert clock.seconds_left(None) == pytest.approx(9 * 60)


def test_steps_that_reuse_the_vectors_of_slow_ones_soon_set_the_time_left() -> None:
    watch = Watch()
    clock = Clock(total=16, now=watch)
    clock.next()
    for seconds in (*[600.0] * 8, 5.0, 5.0):  # a model on eight datasets, and then its fusion
        watch.time += seconds
        clock.next()
    assert clock.seconds_left(None) == pytest.approx(6 * 5)


@pytest.mark.parametrize("width", [80, 100, 120])
def test_the_bar_stays_whole_and_names_are_shortened(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, width)
    with steps(2) as step:
        step(LONG)
        Reporter("documents", 57_000, before=28_000).advance(1)
    lines = [line for line in screen.lines if line.strip()]
    named = [line for line in lines if "1/2" in line]
    assert named and all("━" * shown.BAR in line and line.rstrip().endswith("…") for line in named)
    assert any("28,001/57,000" in line and "left" in line for line in lines)
    assert all(len(line) <= width for line in lines)


def test_names_that_look_like_markup_or_hold_escapes_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch, 120)
    with steps(1) as step:
        step("[bold]folder[/x]\x1b[31m")
    assert any(r"[bold]folder[/x]\x1b[31m" in line for line in screen.lines)
    assert "\x1b[31m" not in screen.getvalue()


def test_a_plain_log_gets_a_line_for_each_step_and_now_and_then_one_for_its_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with steps(2) as step:
        step("Biology · bm25")
        Reporter("documents", 10).advance(5)  # too soon to be told
        monkeypatch.setattr(shown, "QUIET_SECONDS", 0.0)
        step("evil\x1b[31m\nname")
        Reporter("documents", 10).advance(5)
    first, second, work = capsys.readouterr().err.splitlines()
    assert (first, second) == ("[1/2] Biology · bm25", r"[2/2] evil\x1b[31m\nname")
    assert work.startswith("[2/2] 5 of 10 documents, ")
    assert work.endswith("; all steps: about 0:00 left")


def test_threads_report_to_the_listener_of_the_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "QUIET_SECONDS", 0.0)
    with steps(1) as step:
        step("Biology · minilm")
        reporter = Reporter("documents", 40)
        threads = [threading.Thread(target=reporter.advance, args=(10,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert capsys.readouterr().err.splitlines()[-1].startswith("[1/1] 40 of 40 documents, ")
