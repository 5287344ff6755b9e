"""Tables on narrow terminals: numbers are never cut, heads and names fold, long names get labels."""

import io

import pytest
from rich.console import Console

from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Page, Section, Table
from r2med.foundation.pages.terminal import name_labels, print_page

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
    assert "…" not in "".join(lines)


def test_all_columns_are_beside_each_other_where_the_names_fold_into_what_is_left() -> None:
    lines = printed(scores(R2MED, NAMES), 80)
    assert lines[0].split() == ["system", *R2MED]
    assert sum(line.startswith("system") for line in lines) == 1


def test_a_table_that_does_not_fit_has_folded_heads_and_goes_on_behind_the_edge() -> None:
    lines = printed(scores(OWN, NAMES), 80)
    assert sum(line.startswith("system") for line in lines) == 1
    assert max(map(len, lines)) > 80
    head = next(line for line in lines if "my-own-" in line)
    assert set(head.split()) == {"my-own-"}  # heads break after signs that join words


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
    table = Table((Column("name", no_wrap=True), Column("what it is")), [("a-name-of-many-letters", "word " * 40)])
    lines = printed(table, 60)
    assert "a-name-of-many-letters" in lines[2]
    assert all(len(line) <= 60 for line in lines)


def test_two_columns_of_names_fold_beside_numbers() -> None:
    heads = ["questions", "citation-relevance", "not answered", "tokens", "accuracy", "undecided", "searches", "calls"]
    columns = [Column("dataset"), Column("system"), *(Column(head, "score") for head in heads)]
    table = Table(columns, [("Bio", "run:their-runs-of-2026", *(1.5 + number for number in range(8)))])
    lines = printed(table, 100)
    assert all(len(line) <= 100 for line in lines)
    assert len(lines) == 5, "the head and the name of 22 letters need two lines"


def test_columns_that_fit_have_one_line_for_each_row() -> None:
    table = Table([Column("dataset"), Column("system"), Column("score", "score")], [("Bio", "bm25", 1.0)])
    assert len(printed(table, 40)) == 3
