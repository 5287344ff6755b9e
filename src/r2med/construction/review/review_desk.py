"""Choose what a person sees next on the review page: candidates in a personal order, and disagreements of others."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from r2med.construction.review.review_book import ReviewBook, Slot, StoredReview
from r2med.construction.review.review_items import ReviewItem
from r2med.construction.review.reviews import Review, Verdict, is_disputed, rating_table
from r2med.measure.agreement import krippendorff_alpha
from r2med.store import digest

View = dict[str, Any]
"""JSON values for the page. They contain no ids, nothing from judges or other people, and no totals."""


class ReviewDesk:
    """The candidates to review and the file of their reviews."""

    def __init__(self, items: Sequence[ReviewItem], book: ReviewBook) -> None:
        self._items = {item.token: item for item in items}
        self._book = book
        self._order = lru_cache(maxsize=64)(self._shuffled)

    def names(self) -> list[str]:
        """Return the names of all people who have made a review."""
        return sorted({annotator for _, annotator, _ in self._book.kept()})

    def view(self, name: str, at: str = "", step: int = 0) -> View:
        """Return a candidate for a person: `step` places after the one at `at`, or the first without a verdict.

        A person can go back through their own verdicts, and forward up to the first candidate without a verdict.
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
        """Return a candidate that people disagree about, with their verdicts but not their names.

        A person who also reviews sees only candidates that they have reviewed, so that their own verdict stays
        independent. Settled candidates are shown to those who reviewed or settled them. From now on the person's own
        verdicts on all of these are frozen.
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
            # A person can conclude from the number of disagreements alone where others differ.
            self._book.note_seen([token, *(own & set(disputed))], name)
            said = sorted(
                (review for review in by_item[token] if not review.adjudicated), key=lambda r: digest(r.annotator)
            )
            last = [each for (item, _, adjudicated), each in kept.items() if item == token and adjudicated][-1:]
            shown = self._shown(token, last[0] if last else None)
            shown["reviews"] = [{"verdict": review.verdict, "comment": review.comment} for review in said]
        _, annotators, table = rating_table(reviews)
        alpha = krippendorff_alpha(table, "ordinal")
        # JSON has no NaN. α may be undefined, and so may the interval for few passages.
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
    ) -> StoredReview:
        """Store a verdict. Raises KeyError for an unknown candidate, ConflictError if another verdict came before."""
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
        """Return the candidates in a person's order, grouped by question so that each question is read once."""

        def place(item: ReviewItem) -> tuple[str, str]:
            return digest([name, item.question.text]), digest([name, item.token])

        return [item.token for item in sorted(self._items.values(), key=place)]

    def _shown(self, token: str, own: StoredReview | None) -> View:
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
    """Return the position `step` places from `at` within the path, and its token; None past the end of the path."""
    place = path.index(at) if at in path else start
    if step:
        place = max(0, min(place + step, len(path) - 1))
    return place, path[place] if place < len(path) else None


def _is_waiting(kept: Mapping[Slot, StoredReview], token: str, name: str, seen: Container[tuple[str, str]]) -> bool:
    """Return True if a person can still give an independent verdict: they gave none and saw none of others."""
    return not ((token, name, False) in kept or (token, name, True) in kept or (token, name) in seen)
