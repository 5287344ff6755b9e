"""Tables on narrow screens: a name that would fill them gets a label, told above."""

from r2med.cli.labels import labelled

HEADS = ["Bio", "Bioinf", "MedSci", "Exam", "Diag", "Treat", "PMC", "IIYi", "Avg"]
LONG = "hyde(o3-mini, rounds=1) → fuse(bm25+bm25+diver+diver, weights=3:1:3:1) → groupwise(o3-mini, shuffles=2)@100"


def test_names_that_fit_a_few_lines_stay_as_they_are() -> None:
    names = ["bm25", "hyde(author) → bm25", "bm25 → bge-reranker@100 → groupwise(o3-mini)@20"]
    assert labelled(names, HEADS, 80) == (names, [])
    assert labelled([LONG], ["Bio"], 80) == ([LONG], [])
    assert labelled([LONG], HEADS, 200) == ([LONG], [])


def test_a_longer_one_is_told_above_the_table() -> None:
    other = LONG.replace("o3-mini", "gpt4")
    assert labelled(["bm25", LONG, other], HEADS, 80) == (["bm25", "[1]", "[2]"], [f"[1] {LONG}", f"[2] {other}"])
    assert labelled([LONG], HEADS, 10)[0] == ["[1]"]
