"""Tables on narrow screens: figures are never cut, columns wrap into blocks, long names get labels."""

import io

import pytest
from rich.console import Console

from r2med.cli.console import plain
from r2med.cli.figures import Figures, labelled

R2MED = ["Bio", "Bioinf", "MedSci", "Exam", "Diag", "Treat", "PMC", "IIYi", "Avg"]
OWN = [f"my-own-collection-of-cases-{number}" for number in range(12)]
LONG = "hyde(o3-mini, rounds=1) → fuse(bm25+bm25+diver+diver, weights=3:1:3:1) → groupwise(o3-mini, shuffles=2)@100"
NAMES = ["bm25", "hyde(author) → bm25", "bm25 → bge-reranker@100 → groupwise(o3-mini)@20"]


def figures(heads: list[str], names: list[str]) -> Figures:
    rows = [[plain(f"{100 - row - column / 100:.2f}") for column in range(len(heads))] for row in range(len(names))]
    return Figures("system", heads, rows)


def printed(heads: list[str], names: list[str], width: int) -> list[str]:
    output = Console(file=io.StringIO(), width=width)
    figures(heads, names).print(output, names)
    assert isinstance(output.file, io.StringIO)
    return output.file.getvalue().splitlines()


@pytest.mark.parametrize("heads", [R2MED, OWN], ids=["R2MED", "own"])
@pytest.mark.parametrize("width", [20, 40, 80, 100, 120, 200, 100_000])
def test_every_figure_is_whole_at_any_width(heads: list[str], width: int) -> None:
    lines = printed(heads, NAMES, width)
    words = " ".join(lines).split()
    assert all(str(figure) in words for row in figures(heads, NAMES).rows for figure in row)
    assert all(len(line) <= width for line in lines)
    assert "…" not in "".join(lines)


def test_all_columns_stand_beside_each_other_where_the_names_fold_into_what_is_left() -> None:
    lines = printed(R2MED, NAMES, 80)
    assert lines[0].split() == ["system", *R2MED]
    assert sum(line.startswith("system") for line in lines) == 1


def test_columns_that_do_not_fit_go_into_another_block_with_the_names() -> None:
    lines = printed(OWN, NAMES, 80)
    blocks = sum(line.startswith("system") for line in lines)
    assert blocks > 1
    assert sum(line.startswith("bm25  ") for line in lines) == blocks
    assert set(lines[0].split()) == {"my-own-"}  # heads break after signs that join words


def test_heads_are_whole_where_there_is_room() -> None:
    lines = printed(OWN, NAMES, 100_000)
    assert lines[0].split() == ["system", *OWN]
    assert len(lines) == 2 + len(NAMES)


def test_names_that_fit_a_few_lines_stay_as_they_are() -> None:
    assert labelled(NAMES, figures(R2MED, NAMES).room(NAMES, 80)) == (NAMES, [])
    assert labelled([LONG], figures(["Bio"], [LONG]).room([LONG], 80)) == ([LONG], [])
    assert labelled([LONG], figures(R2MED, [LONG]).room([LONG], 200)) == ([LONG], [])


def test_a_longer_one_is_told_above_the_table() -> None:
    other = LONG.replace("o3-mini", "gpt4")
    names = ["bm25", LONG, other]
    room = figures(R2MED, names).room(names, 80)
    assert labelled(names, room) == (["bm25", "[1]", "[2]"], [f"[1] {LONG}", f"[2] {other}"])
