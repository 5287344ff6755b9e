"""The marks of the board are those of `compare`: both count the same tests of the same pairs."""

from __future__ import annotations

from itertools import combinations

from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.marks import Mark
from r2med.publication.site.leaderboard import site_value
from support.records import collection, records

SYSTEMS = {"a": 0.2, "b": 0.31, "c": 0.3, "d": 0.5, "e": 0.52}


def test_the_board_says_what_compare_says_of_the_same_pairs() -> None:
    made = collection(records(SYSTEMS, {"demo/Biology": 40, "demo/PMC-Clinical": 25}, 4))
    compared, site = comparison(made), site_value(made)
    differ = {frozenset({pair.a, pair.b}): pair.significant for pair in compared.pairs}
    assert len(set(differ.values())) == 2
    number = [each["name"] for each in site["sets"]].index("demo")
    on_board = {row["name"]: Mark(**row["marks"][number]) for row in site["systems"]}
    assert on_board == compared.marks
    for a, b in combinations(on_board, 2):
        assert bool({*on_board[a].letters} & {*on_board[b].letters}) is not differ[frozenset({a, b})]
