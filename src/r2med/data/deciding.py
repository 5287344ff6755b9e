"""The rule by which several people decide: the last settlement, or else the majority of those who are sure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median_low


def decided(votes: Iterable[int], is_yes: Callable[[int], bool], settled: Sequence[int] = ()) -> int | None:
    """Return the decision about one item; None if it is undecided.

    `votes` are the answers of people who are sure, as places on an ordered scale: grades, or the words of a rubric.
    `settled` are the answers of people who saw the votes of others, and the last of them counts. Without one, the
    majority of yes or no decides, and of several grades their lower median, which is always on the side of the
    majority. As many yes as no, or nobody who is sure, is undecided.

    It decides passages, points of questions, corrections and nuggets (`assessment/review/reviews.py`), and the labels
    of people in overlays (`data/overlays.py`).
    """
    if settled:
        return settled[-1]
    given = list(votes)
    if 2 * sum(map(is_yes, given)) == len(given):
        return None
    return median_low(given)
