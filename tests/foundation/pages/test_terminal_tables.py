"""Tables on narrow terminals: numbers are never cut, columns wrap into blocks, long names get labels."""

import io

import pytest
from rich.console import Console

from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Page, Section, Table
from r2med.foundation.pages.terminal import print_page
from r2med.foundation.pages.terminal_tables import name_labels

R2MED = ["Bio", "Bioinf", "MedSci", "Exam", "Diag", "Treat", "PMC", "IIYi", "Avg"]
OWN = [f"my-own-collection-of-cases-{number}" for number in range(12)]
LONG = "hyde(o3-mini, rounds=1) → fuse(bm25+bm25+diver+diver, weights=3:1:3:1) → groupwise(o3-mini, shuffles=2)@100"
NAMES = ["bm25", "hyde(author) → bm25", "bm25 → bge-reranker@100 → groupwise(o3-mini)@20"]


def scores(heads: list[str], names: list[str]) -> Table:
    columns = [Column("system"), *(Column(head, "score") for head in heads)]
    rows: list[list[Value]] = [
        [name, *(100 - row - column / 100 for column in range(len(heads)))] for row, name in enumerate(names)
    ]
    return Table(columns, rows)


def printed(table: Table, width: int) -> list[str]:
    out = io.StringIO()
    print_page(Page("", [Section("", [table])]), Console(file=out, width=width))
    return out.getvalue().splitlines()


@pytest.mark.parametrize("heads", [R2MED, OWN], ids=["R2MED", "own"])
@pytest.mark.parametrize("width", [20, 40, 80, 100, 120, 200, 100_000])
def test_every_number_is_whole_at_any_width(heads: list[str], width: int) -> None:
    lines = printed(scores(heads, NAMES[:2]), width)
    words = " ".join(lines).split()
    assert all(f"{number:.2f}" in words for _, *row in scores(heads, NAMES[:2]).rows for number in row)
    assert all(len(line) <= width for line in lines)
    assert "…" not in "".join(lines)


def test_all_columns_are_beside_each_other_where_the_names_fold_into_what_is_left() -> None:
    lines = printed(scores(R2MED, NAMES), 80)
    assert lines[0].split() == ["system", *R2MED]
    assert sum(line.startswith("system") for line in lines) == 1


def test_columns_that_do_not_fit_go_into_another_block_with_the_names() -> None:
    lines = printed(scores(OWN, NAMES), 80)
    blocks = sum(line.startswith("system") for line in lines)
    assert blocks > 1
    assert sum(line.startswith("bm25  ") for line in lines) == blocks
    assert set(lines[0].split()) == {"my-own-"}  # heads break after signs that join words


def test_heads_are_whole_where_there_is_room() -> None:
    lines = printed(scores(OWN, NAMES), 100_000)
    assert lines[0].split() == ["system", *OWN]
    assert len(lines) == 2 + len(NAMES)


def test_names_that_fit_a_few_lines_stay_as_they_are() -> None:
    assert name_labels(scores(R2MED, NAMES), 80) == {}
    assert name_labels(scores(["Bio"], [LONG]), 80) == {}
    assert name_labels(scores(R2MED, [LONG]), 200) == {}


def test_a_longer_one_is_explained_above_the_table() -> None:
    other = LONG.replace("o3-mini", "gpt4")
    table = scores(R2MED, ["bm25", LONG, other])
    assert name_labels(table, 80) == {LONG: "[1]", other: "[2]"}
    lines = printed(table, 80)
    assert "".join(lines[:4]).startswith(f"[1] {LONG}[2] {other}")
    assert [line.split()[0] for line in lines[-3:]] == ["bm25", "[1]", "[2]"]


def test_texts_fold_and_columns_that_must_not_do_stay_whole() -> None:
    table = Table((Column("name", whole=True), Column("what it is")), [("a-name-of-many-letters", "word " * 40)])
    lines = printed(table, 60)
    assert "a-name-of-many-letters" in lines[2]
    assert all(len(line) <= 60 for line in lines)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_two_columns_of_names_come_before_each_block_of_numbers(width: int) -> None:
    heads = ["questions", "citation-relevance", "not answered", "tokens", "accuracy", "undecided", "searches", "calls"]
    columns = [Column("dataset"), Column("system"), *(Column(head, "score") for head in heads)]
    table = Table(columns, [("Bio", "run:their-runs-of-2026", *(1.5 + number for number in range(8)))])
    lines = printed(table, width)
    blocks = [line.split() for line in lines if line.startswith("dataset")]
    assert len(blocks) > 1
    assert all(block[:2] == ["dataset", "system"] for block in blocks)
    assert sum(line.startswith("Bio ") for line in lines) == len(blocks)
    assert len(lines) <= 5 * len(blocks) + len(blocks), "names of 20 letters need at most two lines"
    assert all(len(line) <= width for line in lines)


def test_columns_that_fit_are_one_block() -> None:
    table = Table([Column("dataset"), Column("system"), Column("score", "score")], [("Bio", "bm25", 1.0)])
    assert len(printed(table, 40)) == 3
