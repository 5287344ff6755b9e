"""What is printed: whole on any terminal or pipe, and never more than text."""

import json

import pytest

from r2med.cli.formats import console, print_json
from r2med.foundation.pages.cells import Column
from r2med.foundation.pages.page import Table
from r2med.foundation.pages.terminal import plain, print_table

NAMES = ["a-name-without-spaces-that-is-much-longer-than-its-column", "[bold]x[/y]", "evil\x1b[31m"]


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    columns = (Column("name"), Column("tokens", "number"), Column("kind", no_wrap=True))
    with console() as output:
        print_table(Table(columns, [(name, "1,234,567.89", "x") for name in NAMES]), output, {})
    return capsys.readouterr().out.splitlines()


def test_names_fold_and_numbers_stay_whole(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    printed = lines(capsys)
    assert sum("1,234,567.89" in line for line in printed) == len(NAMES)
    assert all(len(line) <= 30 for line in printed)
    assert "".join(line[:12].strip() for line in printed[2:]).startswith(NAMES[0])


def test_a_pipe_is_as_wide_as_one_likes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(lines(capsys)) == 2 + len(NAMES)
    with console() as output:
        output.print(plain("word " * 1000))
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_table_in_a_pipe_is_not_filled_up_with_spaces(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    with console() as output:
        print_table(Table.of(("what", "here"), [("cache", "x" * 400), ("cores", "2")]), output, {})
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith(" ")] == []


def test_markup_and_escapes_are_shown_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    printed = "\n".join(lines(capsys))
    assert "[bold]x[/y]" in printed and r"evil\x1b[31m" in printed
    assert "\x1b" not in printed


def test_json_keeps_letters_and_escapes_what_could_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"é → 愛": ["\x1b[31m", "\x9b", "\u202e", "\U000e0001", "\ud800", 0.1]}
    print_json(value)
    printed = capsys.readouterr().out
    assert "é → 愛" in printed
    assert all(sign.isprintable() for sign in printed.replace("\n", ""))
    assert json.loads(printed) == value
