"""Ratings: what raters said about items, how far they agree, and the one table that shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from r2med.evaluation.measure.coefficients import (
    Agreement,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    observed_agreement,
)
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.pages.cells import Column
from r2med.foundation.pages.page import Table


@dataclass(frozen=True)
class Rating:
    """What one rater said about one item."""

    item: str
    """Token of the item."""
    rater: str
    """The LLM or the person."""
    answers: Mapping[str, str]
    """Point of the rubric -> word."""
    why: str = ""
    at: str = ""
    """Date and time in UTC."""

    @property
    def word(self) -> str:
        """The words of all points; for a rubric with one point, its word."""
        return " ".join(self.answers.values())


@dataclass(frozen=True)
class Ratings:
    """Items × raters: the word that each rater gave to each item."""

    words: Sequence[str]
    """The words that raters could give, from the lowest to the highest."""
    said: Mapping[Hashable, Mapping[str, str]]
    """Item -> rater -> word."""

    @classmethod
    def of(cls, words: Sequence[str], given: Iterable[tuple[Hashable, str, str]]) -> Ratings:
        """Return the ratings of (item, rater, word). If a rater rated an item twice, the last word counts."""
        said: dict[Hashable, dict[str, str]] = {}
        for item, rater, word in given:
            said.setdefault(item, {})[rater] = word
        return cls(words, said)

    @cached_property
    def raters(self) -> tuple[str, ...]:
        """The raters by name."""
        return tuple(sorted({rater for row in self.said.values() for rater in row}))

    def table(self, *raters: str) -> Floats:
        """Return items × raters: the place of each word among the words, from 0; NaN for a missing rating."""
        places = {word: float(place) for place, word in enumerate(self.words)}
        columns = raters or self.raters
        rows = [[places[row[rater]] if rater in row else np.nan for rater in columns] for row in self.said.values()]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))

    def agreement(self, *raters: str) -> RaterAgreement:
        """Return how far these raters agree, or all."""
        chosen = raters or self.raters
        table = self.table(*chosen)
        return RaterAgreement(self.words, chosen, table[(~np.isnan(table)).sum(axis=1) >= 2])

    def agreements(self) -> list[RaterAgreement]:
        """Return the agreement of all raters, then of each two if there are more. Empty if no item has two ratings."""
        pairs = combinations(self.raters, 2) if len(self.raters) > 2 else ()
        found = [self.agreement(), *(self.agreement(*pair) for pair in pairs)]
        return [each for each in found if each.items]


@dataclass(frozen=True, eq=False)
class RaterAgreement:
    """How far raters agree about the items that at least two of them rated.

    Words are ordered. If there are more than two, a disagreement counts by the distance of the two words: κ and AC have
    quadratic weights, and α is ordinal.
    """

    words: Sequence[str]
    raters: tuple[str, ...]
    table: Floats
    """Items × raters, only with items that at least two of them rated."""

    @property
    def items(self) -> int:
        """Number of items that the coefficients rest on."""
        return len(self.table)

    @property
    def is_ordered(self) -> bool:
        """True if there are more than two words, so that some are farther apart than others."""
        return len(self.words) > 2

    @cached_property
    def observed(self) -> Agreement:
        """How often two raters of an item gave the same word."""
        return observed_agreement(self.table)

    @cached_property
    def kappa(self) -> Agreement | None:
        """Cohen's κ of two raters, with quadratic weights for ordered words; Fleiss' κ of more about two words.

        None for more than two raters and ordered words: Fleiss' κ has no weights. α has.
        """
        if len(self.raters) == 2:
            return cohen_kappa(self.table, "quadratic" if self.is_ordered else None)
        return None if self.is_ordered else fleiss_kappa(self.table)

    @cached_property
    def alpha(self) -> Agreement:
        """Krippendorff's ordinal α."""
        return krippendorff_alpha(self.table, "ordinal")

    @cached_property
    def gwet(self) -> Agreement:
        """Gwet's AC1 for two words, and AC2 with quadratic weights for more."""
        return gwet_ac1(self.table, len(self.words), "quadratic" if self.is_ordered else None)

    @cached_property
    def commonest(self) -> tuple[str, float]:
        """The word that was given most often, and its share."""
        counts = Counter(self.table[~np.isnan(self.table)].tolist())
        place, count = max(counts.items(), key=lambda each: (each[1], -each[0]))
        return self.words[int(place)], count / counts.total()


AGREEMENT_NOTE = (
    "Items: those that at least two of the raters rated; all other columns rest on them. Agree: how often two raters "
    "give the same answer. κ is Cohen's for two raters and Fleiss' for more, α is Krippendorff's (ordinal), AC is "
    "Gwet's. With more than two ordered answers, κ and AC have quadratic weights (AC2), and more than two raters have "
    "no κ. κ and α of few items have no interval."
)


def agreement_table(
    heads: Sequence[str],
    rows: Sequence[tuple[Sequence[str | int], RaterAgreement]],
    title: str = "",
    name: str = "",
    note: str = "",
) -> Table:
    """Return the table of agreement: the given columns, then the items it rests on, and every coefficient."""
    lead = [
        Column(head, "integer" if all(isinstance(given[place], int) for given, _ in rows) else "text")
        for place, head in enumerate(heads)
    ]
    columns = [
        *(*lead, Column("items", "integer"), Column("agree", "share", 0)),
        *(Column("κ", "number"), Column("α", "number"), Column("AC", "number")),
    ]
    cells = [(*given, each.items, each.observed, each.kappa, each.alpha, each.gwet) for given, each in rows]
    return Table(columns, cells, title, " ".join(filter(None, (note, AGREEMENT_NOTE))), name)
