"""Mark the systems of a table: by letters that systems share, or by how many systems are better and worse.

All marks are counted from the tests of the pairs. Nothing is inferred from other marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from string import ascii_lowercase

import numpy as np

from r2med.evaluation.measure.run_variance import SingleRuns, run_spread
from r2med.evaluation.measure.significance import ALPHA, Sample, SystemPairs, Values, means, sign_flips

MOST_LETTERS = 6
"""Number of letters of a table above which no letters are shown."""


@dataclass(frozen=True)
class Mark:
    """How a system compares with the systems that it was tested against."""

    letters: str
    """The letters of the system. Two systems share a letter if and only if their pair does not differ significantly.
    Empty if the table needs more than `MOST_LETTERS` letters, or if not all pairs were tested."""
    better: int
    """Number of systems that this one is significantly better than."""
    worse: int
    """Number of systems that this one is significantly worse than."""
    alike: int
    """Number of systems that cannot be distinguished from this one."""

    @property
    def against_one(self) -> str:
        """The verdict in words on a system that was tested against one other system."""
        return "better" if self.better else "worse" if self.worse else "not distinguished"

    def __str__(self) -> str:
        """Return the letters, or else the counts in words."""
        return self.letters or f"better than {self.better}, worse than {self.worse}"


def marks(ranked: Sequence[str], tested: Iterable[tuple[str, str, bool]]) -> dict[str, Mark]:
    """Return the mark of each system, from the tested pairs: the better system, the other one, and if they differ."""
    better, worse, alike = ({system: set[str]() for system in ranked} for _ in range(3))
    pairs = 0
    for first, second, differs in tested:
        pairs += 1
        if differs:
            better[first].add(second)
            worse[second].add(first)
        else:
            alike[first].add(second)
            alike[second].add(first)
    are_all_tested = pairs == len(ranked) * (len(ranked) - 1) // 2
    letters = _letters(ranked, alike) if are_all_tested else {}
    return {
        system: Mark(letters.get(system, ""), len(better[system]), len(worse[system]), len(alike[system]))
        for system in ranked
    }


def average_marks(names: Sequence[str], values: Values, single: SingleRuns) -> dict[str, Mark]:
    """Return the marks of the systems that have all values, from the tests of all their pairs over all datasets."""
    scores = means(values).tolist()
    ranked = sorted(np.flatnonzero(~np.isnan(scores)).tolist(), key=lambda system: -scores[system])
    shared = {dataset: rows[ranked] for dataset, rows in values.items()}
    pairs = SystemPairs.all(len(ranked))
    [test] = sign_flips([Sample.whole(shared, run_spread(single).of(np.array(ranked, dtype=np.intp)))], pairs)
    best_first = [names[system] for system in ranked]
    tested = zip(pairs.first.tolist(), pairs.second.tolist(), (test.p_adjusted <= ALPHA).tolist(), strict=True)
    return marks(best_first, [(best_first[a], best_first[b], differs) for a, b, differs in tested])


def _letters(ranked: Sequence[str], alike: Mapping[str, set[str]]) -> dict[str, str]:
    """Return the letters of each system; nothing if more than `MOST_LETTERS` are needed.

    A letter stands for a set of systems. No two systems of a set differ, and no other system can be added to it. The
    sets with the best systems come first.
    """
    cliques = list(islice(_cliques(alike, frozenset(), set(ranked), set()), MOST_LETTERS + 1))
    if len(cliques) > MOST_LETTERS:
        return {}
    rank = {system: number for number, system in enumerate(ranked)}
    cliques.sort(key=lambda clique: sorted(rank[system] for system in clique))
    return {
        system: "".join(letter for letter, clique in zip(ascii_lowercase, cliques, strict=False) if system in clique)
        for system in ranked
    }


def _cliques(
    alike: Mapping[str, set[str]], clique: frozenset[str], candidates: set[str], done: set[str]
) -> Iterator[frozenset[str]]:
    """Yield every largest possible set of systems that are all alike (Bron and Kerbosch, with a pivot)."""
    if not candidates and not done:
        yield clique
        return
    pivot = max(candidates | done, key=lambda system: len(alike[system] & candidates))
    for system in candidates - alike[pivot]:
        yield from _cliques(alike, clique | {system}, candidates & alike[system], done & alike[system])
        candidates.remove(system)
        done.add(system)
