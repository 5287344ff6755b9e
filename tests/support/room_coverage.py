"""Measure which rooms have tests that pass, and how much of each room they execute. Fail if it is too little.

`Measurement` is a plugin of pytest, which tests/conftest.py adds if the environment names a folder for its files, as
`make test-all` does. `python room_coverage.py FOLDER` then prints every room and exits with 1 if one is below its
least share.

Each room needs a passed test in the folder of `tests/` with its name: tests of other rooms run most lines of a room
such as `data`, so lines alone do not show that its own tests run. Nothing is measured while modules are imported, nor
what tests run in other processes, such as commands: see `OTHER_SHARES`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest
from coverage import Coverage

SOURCE = Path(__file__).parents[2] / "src/r2med"
VARIABLE = "R2MED_TEST_COVERAGE"
"""Name of the variable with the folder."""

TESTS_OF_A_FILE = 2
"""Number of tests of each file that are measured."""

PASSED = "passed-"
"""The files with the rooms of passed tests begin with it."""

LEAST_SHARE = 20
"""The least share of lines, in percent."""
OTHER_SHARES = {"cli": 8, "public": 10, "foundation/engine": 10, "models/llm": 15}
"""Rooms with another least share: much of their work is done in other processes."""


ROOMLESS = {"data", "analysis", "construction", "server", "public", "cli"}
"""Floors without rooms."""


def room_of(file: Path) -> str:
    """Return the room of a file, given relative to the package or to `tests/`; the floor where it has no rooms."""
    return file.parts[0] if file.parts[0] in ROOMLESS else "/".join(file.parts[:2])


def coverage_in(folder: Path) -> Coverage:
    """Return the measurement of all files of r2med, with its data in a folder."""
    return Coverage(
        data_file=folder / "lines", data_suffix=True, source=[str(SOURCE)], config_file=False, messages=False
    )


class Measurement:
    """Measures one process of pytest, with some of its tests: Python 3.11 is slow while it is traced."""

    def __init__(self, folder: Path) -> None:
        self.coverage = coverage_in(folder)
        self.measured: set[str] = set()
        self.passed: set[str] = set()
        self.passed_file = folder / f"{PASSED}{os.getpid()}"

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Choose the first quick tests of each file, which show whether the tests of a room run."""
        chosen: Counter[Path] = Counter()
        seen = set()
        for item in items:
            name = item.nodeid.split("[")[0]
            is_random = hasattr(getattr(item, "obj", None), "hypothesis")
            usable = name not in seen and not is_random and not item.get_closest_marker("slow")
            if usable and chosen[item.path] < TESTS_OF_A_FILE:
                self.measured.add(item.nodeid)
                chosen[item.path] += 1
            seen.add(name)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measure a test with its fixtures."""
        if item.nodeid not in self.measured:
            return (yield)
        self.coverage.start()
        threading.settrace(None)  # type: ignore[arg-type]  # two threads cannot install a tracer at once
        try:
            return (yield)
        finally:
            self.coverage.stop()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the room of a test that passed."""
        if report.when == "call" and report.passed:
            self.passed.add(room_of(Path(report.nodeid.split("::")[0]).relative_to("tests")))

    def pytest_sessionfinish(self) -> None:
        """Write what was measured."""
        if self.measured:
            self.coverage.save()
        self.passed_file.write_text("".join(f"{room}\n" for room in sorted(self.passed)), encoding="utf-8")


def executed(folder: Path) -> Iterator[tuple[Path, int, int]]:
    """Yield each file of r2med with the number of its lines that ran, and of all its lines."""
    coverage = coverage_in(folder)
    coverage.combine([str(folder)])
    for file in sorted(SOURCE.rglob("*.py")):
        _, lines, _, missing, _ = coverage.analysis2(str(file))
        yield file.relative_to(SOURCE), len(lines) - len(missing), len(lines)


def shares(files: Iterator[tuple[Path, int, int]]) -> dict[str, float]:
    """Return room -> percent of its lines that ran."""
    ran: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for file, some, count in files:
        if len(file.parts) > 1 and file.name != "__init__.py":  # these and files of the package itself only import
            ran[room_of(file)] += some
            lines[room_of(file)] += count
    return {room: 100 * ran[room] / count for room, count in sorted(lines.items()) if count}


def too_low(found: dict[str, float]) -> list[str]:
    """Return a line for each room below its least share."""
    return [
        f"{room}: the tests ran {share:.0f} % of its lines, and at least {OTHER_SHARES.get(room, LEAST_SHARE)} % must"
        for room, share in found.items()
        if share < OTHER_SHARES.get(room, LEAST_SHARE)
    ]


def without_tests(rooms: Iterable[str], folder: Path) -> list[str]:
    """Return a line for each room of which no test passed."""
    passed = {room for file in folder.glob(f"{PASSED}*") for room in file.read_text(encoding="utf-8").split()}
    return [f"{room}: no test in tests/{room} passed" for room in rooms if room not in passed]


def main() -> None:
    """Print every room, and exit with 1 if one is below its least share or no test of its own passed."""
    folder = Path(sys.argv[1])
    found = shares(executed(folder))
    print("lines that some of the tests ran:", ", ".join(f"{room} {share:.0f} %" for room, share in found.items()))
    if wrong := [*without_tests(found, folder), *too_low(found)]:
        sys.exit("\n".join([*wrong, "Do the tests of this room run? Look for its folder in the output of pytest -v."]))


if __name__ == "__main__":
    main()
