"""Ratings: what raters said about items, and how far they agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
