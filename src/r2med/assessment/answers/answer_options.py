"""The options of a choice: those of the dataset, or the right answer with answers of other queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from r2med.data.dataset import Query

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DRAWN_OPTIONS = 4
"""Number of options of a query whose dataset has none."""


def options_of(query: Query, others: Sequence[Query]) -> tuple[str, ...]:
    """Return the options of a query as its dataset has them.

    A query without options gets its answer and up to three answers of other queries, in an order that only the query
    determines.
    """
    if query.options:
        return query.options
    random = np.random.default_rng(list(query.id.encode()))
    wrong = sorted({other.answer for other in others} - {query.answer})
    drawn = [wrong[number] for number in random.permutation(len(wrong))[: DRAWN_OPTIONS - 1]]
    options = [query.answer, *drawn]
    return tuple(options[number] for number in random.permutation(len(options)))


def lettered(options: Sequence[str]) -> str:
    """Return options as lines, each with its letter."""
    return "\n".join(f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=False))
