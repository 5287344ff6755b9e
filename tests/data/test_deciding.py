"""The rule by which several people decide."""

import pytest

from r2med.data.deciding import decided


@pytest.mark.parametrize(
    ("votes", "decision"),
    [
        ([], None),
        ([0, 2], None),
        ([2, 3, 0, 1], None),
        ([3], 3),
        ([2, 3], 2),
        ([0, 3, 3], 3),
        ([0, 1, 3], 1),
        ([0, 0, 3], 0),
    ],
)
def test_the_majority_of_yes_or_no_decides_and_their_lower_median_is_the_grade(votes, decision):
    assert decided(votes, lambda grade: grade >= 2) == decision


def test_the_last_settlement_comes_before_all_votes():
    assert decided([0, 0, 0], bool, [1, 3]) == 3
    assert decided([], bool, [0]) == 0
