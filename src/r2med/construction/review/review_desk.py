"""What a person at the review page sees next: candidates in an order of their own, and what others disagree about."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from r2med.construction.review.review_book import Kept, ReviewBook, Slot
from r2med.construction.review.review_items import ReviewItem
from r2med.construction.review.reviews import Review, Verdict, is_disputed, rating_table
from r2med.measure.agreement import krippendorff_alpha
from r2med.store import digest

View = dict[str, Any]
"""Fit for JSON. No ids, nothing of judges, nothing of other people, nothing that tells how many there are."""


class ReviewDesk:
    """The candidates that are reviewed, and the file of what is said of them."""

    def __init__(self, items: Sequence[ReviewItem], book: ReviewBook) -> None:
        self._items = {item.token: item for item in items}
        self._book = book
        self._order = lru_cache(maxsize=64)(self._shuffled)

    def names(self) -> list[str]:
        """Return who has reviewed something."""
        return sorted({annotator for _, annotator, _ in self._book.kept()})

    def view(self, name: str, at: str = "", step: int = 0) -> View:
        """Return a candidate for a person: the one at `at`, or `step` further on, or the first without a verdict.

        One goes back through what one has said, and on to the first candidate without a verdict, but no further.
        """
        kept, seen = self._book.kept(), self._book.seen()
        said = [token for token in self._order(name) if (token, name, False) in kept]
        waiting = next((each for each in self._order(name) if _is_waiting(kept, each, name, seen)), None)
        path = [*said, *([waiting] if waiting else [])]
        place, token = _moved(path, at, len(said), step)
        shown = None
        if token:
            shown = self._shown(token, kept.get((token, name, True)) or kept.get((token, name, False)))
            shown["frozen"] = (token, name) in seen
        return {"item": shown, "reviewed": len(said), "back": place > 0, "on": place + 1 < len(path)}

    def dispute(self, name: str, at: str = "", step: int = 0) -> View:
        """Return a candidate that people disagree about, with what they said, but not who.

        Who reviews as well sees only what they have reviewed themselves: they are not to know before. What was settled
        is shown to those who reviewed or settled it. From here on the person's own verdicts on all of these are frozen.
        """
        kept = self._book.kept()
        reviews = [each.review for each in kept.values() if each.review.item in self._items]
        by_item: dict[str, list[Review]] = {}
        for review in reviews:
            by_item.setdefault(review.item, []).append(review)
        own = {review.item for review in reviews if review.annotator == name and not review.adjudicated}
        known = own | {item for item, annotator in self._book.seen() if annotator == name}
        settled = [
            token for token, said in by_item.items() if token in known and any(review.adjudicated for review in said)
        ]
        disputed = [token for token, said in by_item.items() if is_disputed(said) and (token in known or not own)]
        path = [*settled, *sorted(disputed)]
        place, token = _moved(path, at, len(settled), step)
        shown = None
        if token:
            # From the number of disagreements alone a person can conclude where others differ.
            self._book.note_seen([token, *(own & set(disputed))], name)
            said = sorted(
                (review for review in by_item[token] if not review.adjudicated), key=lambda r: digest(r.annotator)
            )
            last = [each for (item, _, adjudicated), each in kept.items() if item == token and adjudicated][-1:]
            shown = self._shown(token, last[0] if last else None)
            shown["reviews"] = [{"verdict": review.verdict, "comment": review.comment} for review in said]
        _, annotators, table = rating_table(reviews)
        alpha = krippendorff_alpha(table, "ordinal")
        # JSON has no NaN: neither where α is not defined, nor for the interval of few passages.
        agreement = None if np.isnan(alpha.value) else [alpha.value, alpha.low, alpha.high, alpha.units]
        return {
            "item": shown,
            "open": len(disputed),
            "settled": len(settled),
            "back": place > 0,
            "on": place + 1 < len(path),
            "annotators": len(annotators),
            "alpha": agreement,
        }

    def decide(
        self, name: str, token: str, verdict: Verdict, comment: str, seen: str | None, adjudicated: bool = False
    ) -> Kept:
        """Keep a verdict. Raises KeyError if there is no such candidate, ConflictError if another one came before."""
        item = self._items[token]
        said = Review(
            question=item.question.id,
            chunk=item.chunk.id,
            annotator=name,
            verdict=verdict,
            comment=comment,
            adjudicated=adjudicated,
            item=token,
        )
        return self._book.add(said, seen)

    def _shuffled(self, name: str) -> list[str]:
        """Return the candidates in a person's order: question by question, so that each is read once."""

        def place(item: ReviewItem) -> tuple[str, str]:
            return digest([name, item.question.text]), digest([name, item.token])

        return [item.token for item in sorted(self._items.values(), key=place)]

    def _shown(self, token: str, own: Kept | None) -> View:
        item = self._items[token]
        said = own.review if own else None
        return {
            "token": token,
            "query": item.question.text,
            "answer": item.question.answer,
            "reasoning": item.question.reasoning,
            "passage": item.chunk.text,
            "title": item.chunk.title,
            "url": item.chunk.url,
            "source": item.chunk.source,
            "verdict": said.verdict if said else None,
            "comment": said.comment if said else "",
            "revision": own.revision if own else "",
        }


def _moved(path: Sequence[str], at: str, start: int, step: int) -> tuple[int, str | None]:
    """Return the place some steps from where one is, within the path, and what is there; past its end there is none."""
    place = path.index(at) if at in path else start
    if step:
        place = max(0, min(place + step, len(path) - 1))
    return place, path[place] if place < len(path) else None


def _is_waiting(kept: Mapping[Slot, Kept], token: str, name: str, seen: Container[tuple[str, str]]) -> bool:
    """Return True if a person has a verdict to give; who was shown what others said can give no independent one."""
    return not ((token, name, False) in kept or (token, name, True) in kept or (token, name) in seen)
