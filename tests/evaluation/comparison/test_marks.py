"""Marks of systems: letters and counts say what the tests of the pairs say, on every surface."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from r2med.evaluation.comparison.comparison import comparison
from r2med.evaluation.comparison.marks import MOST_LETTERS, Mark, marks
from r2med.evaluation.comparison.report_tables import EQUAL, score_table
from r2med.evaluation.comparison.verdicts import mark_rule
from r2med.evaluation.records.record import Record
from support.facts import states
from support.records import collection, records

Tested = list[tuple[str, str, bool]]


def drawn(random: np.random.Generator, systems: int, share: float) -> tuple[list[str], Tested]:
    """Return systems, the best first, and their pairs, of which about a share differ."""
    names = [f"s{number}" for number in range(systems)]
    return names, [(a, b, bool(random.random() < share)) for a, b in combinations(names, 2)]


def test_two_systems_share_a_letter_if_and_only_if_their_pair_does_not_differ() -> None:
    random = np.random.default_rng(1)
    lettered = 0
    for _ in range(400):
        names, pairs = drawn(random, int(random.integers(2, 9)), random.random())
        made = marks(names, pairs)
        if not made[names[0]].letters:
            continue
        lettered += 1
        for a, b, differs in pairs:
            assert bool(set(made[a].letters) & set(made[b].letters)) is not differs
        used = {letter: {name for name in names if letter in made[name].letters} for letter in "abcdef"}
        groups = [group for group in used.values() if group]
        assert all(not one < other for one, other in combinations(groups, 2)), "a letter is a largest possible set"
        assert all(name in group for name in names[:1] for group in groups[:1]), "the best system has the letter a"
    assert lettered > 200


def test_counts_are_those_of_the_pairs_with_letters_or_without() -> None:
    random = np.random.default_rng(2)
    for _ in range(100):
        names, pairs = drawn(random, int(random.integers(2, 20)), random.random())
        for name, mark in marks(names, pairs).items():
            assert mark.better == sum(differs and a == name for a, _, differs in pairs)
            assert mark.worse == sum(differs and b == name for _, b, differs in pairs)
            assert mark.alike == len(names) - 1 - mark.better - mark.worse


def test_a_table_that_needs_more_than_six_letters_has_none() -> None:
    for systems in (MOST_LETTERS, MOST_LETTERS + 1):
        names = [f"s{number}" for number in range(systems)]
        made = marks(names, [(a, b, True) for a, b in combinations(names, 2)])
        if systems == MOST_LETTERS:
            assert [str(mark) for mark in made.values()] == list("abcdef")
        else:
            assert str(made["s2"]) == "better than 4, worse than 2"


def test_a_hundred_systems_of_which_half_of_the_pairs_differ_are_marked_at_once() -> None:
    names, pairs = drawn(np.random.default_rng(3), 100, 0.5)
    assert not any(mark.letters for mark in marks(names, pairs).values())


def test_pairs_that_were_not_tested_give_no_letters() -> None:
    made = marks(["a", "b", "c"], [("a", "c", True), ("b", "c", False)])
    assert made == {"a": Mark("", 1, 0, 0), "b": Mark("", 0, 0, 1), "c": Mark("", 0, 1, 1)}
    assert marks(["a"], []) == {"a": Mark("a", 0, 0, 0)}


def grid() -> list[Record]:
    """Return systems on two datasets, some of them close to each other."""
    return records(
        {"a": 0.2, "b": 0.31, "c": 0.3, "d": 0.5, "e": 0.52}, {"demo/Biology": 40, "demo/PMC-Clinical": 25}, 4
    )


def test_with_a_baseline_a_mark_says_better_or_worse_or_not_distinguished() -> None:
    compared = comparison(collection(grid()), baseline="c", resamples=999)
    assert set(compared.mark_words.values()) == {"baseline", "better", "worse", "not distinguished"}
    for pair in compared.pairs:
        expected = ("better" if pair.difference > 0 else "worse") if pair.significant else "not distinguished"
        assert compared.mark_words[pair.a] == expected
    states(mark_rule(compared), "against c")
    rule = mark_rule(comparison(collection(grid()), resamples=999))
    states(rule, "share a letter unless they differ (paired sign flips, adjusted p at most 0.05)")


def test_the_report_marks_the_systems_whose_pair_with_the_best_does_not_differ() -> None:
    compared = comparison(collection(grid()))
    differ = {frozenset({pair.a, pair.b}): pair.significant for pair in compared.pairs}
    assert len(set(differ.values())) == 2
    best = compared.ranked[0].system
    equal = {row[0] for row in score_table(compared).rows if row[-1].mark == EQUAL}  # type: ignore[union-attr]
    assert equal == {name for pair, is_real in differ.items() if best in pair and not is_real for name in pair - {best}}
