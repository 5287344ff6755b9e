"""Choose what a person sees next on the review page: items in a personal order, and disagreements of others."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from r2med.assessment.review.review_book import ReviewBook, Slot, StoredReview
from r2med.assessment.review.reviews import Review, is_disputed, is_unsettled, ratings_of, rubrics_of
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RatedText, Rubric, Verdict
from r2med.foundation.store import digest

View = dict[str, Any]
"""JSON values for the page. They contain no ids, nothing from judges or other people, and no totals."""


class ReviewDesk:
    """The items of one kind to review, and the file of their reviews."""

    def __init__(
        self, items: Sequence[Item], book: ReviewBook, reviews_per_item: int = 0, *, in_order: bool = False
    ) -> None:
        """Make a desk. An item is shown until it has this number of reviews. With 0, everybody sees every item.

        Everybody has a personal order of the items. With `in_order`, all have the given one.
        """
        self._items = {item.token: item for item in items}
        self._book = book
        self._wanted = reviews_per_item
        self._order = (lambda name: list(self._items)) if in_order else lru_cache(maxsize=64)(self._shuffled)

    @property
    def rubric(self) -> Rubric:
        """What is asked about the items."""
        return self._book.rubrics[next(iter(self._items.values())).rubric]

    @property
    def finished(self) -> int:
        """Number of items that have the wanted number of reviews."""
        reviewers = self._book.reviewers()
        return sum(not self._needs_reviews(token, reviewers) for token in self._items)

    def names(self) -> list[str]:
        """Return the names of all people who have made a review."""
        return sorted({annotator for _, annotator, _ in self._book.kept()})

    def view(self, name: str, at: str = "", step: int = 0) -> View:
        """Return an item for a person: `step` places after the one at `at`, or the first without a verdict.

        A person can go back through their own verdicts, and forward up to the first item without a verdict.
        """
        kept, seen = self._book.kept(), self._book.seen()
        said = [token for token in self._order(name) if (token, name, False) in kept]
        open_items = (each for each in self._order(name) if _is_waiting(kept, each, name, seen))
        reviewers = self._book.reviewers()
        waiting = next((each for each in open_items if self._needs_reviews(each, reviewers)), None)
        path = [*said, *([waiting] if waiting else [])]
        place, token = _moved(path, at, len(said), step)
        shown = None
        if token:
            shown = self._shown(token, kept.get((token, name, True)) or kept.get((token, name, False)))
            shown["frozen"] = (token, name) in seen
        finished = {"finished": self.finished} if self._wanted else {}
        return {"item": shown, "reviewed": len(said), "back": place > 0, "on": place + 1 < len(path), **finished}

    def _needs_reviews(self, token: str, reviewers: Mapping[str, set[str]]) -> bool:
        """Return True if an item has fewer reviews than wanted, or if everybody sees every item."""
        return not self._wanted or len(reviewers.get(token, set())) < self._wanted

    def dispute(self, name: str, at: str = "", step: int = 0) -> View:
        """Return an item that people disagree about, with their verdicts but not their names.

        A person who also reviews sees only items that they have reviewed, so that their own verdict stays independent.
        Settled items are shown to those who reviewed or settled them. From now on the person's own verdicts on all of
        these are frozen.
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
        disputed = [token for token, said in by_item.items() if _is_open(said) and (token in known or not own)]
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
            shown["reviews"] = [opinion_view(review) for review in said]
        return {
            "item": shown,
            "open": len(disputed),
            "settled": len(settled),
            "back": place > 0,
            "on": place + 1 < len(path),
            "annotators": len({review.annotator for review in reviews if not review.adjudicated}),
            "alpha": dict(_alphas(reviews)),
        }

    def decide(
        self,
        name: str,
        token: str,
        said: Verdict | Mapping[str, str],
        comment: str,
        seen: str | None,
        adjudicated: bool = False,
        correction: str = "",
    ) -> StoredReview:
        """Store a verdict, or the answers to the points of the kind, and the text as the person corrects it.

        Raises KeyError for an unknown item, ConflictError if another verdict came before, and ValueError for answers
        that do not belong to the kind.
        """
        item = self._items[token]
        question, chunk = item.id
        fields = {
            **{"question": question, "chunk": chunk, "kind": item.rubric, "item": token},
            **({"verdict": said} if isinstance(said, str) else {"answers": said}),
            **{"annotator": name, "comment": comment, "adjudicated": adjudicated},
            "correction": self._changed(item, correction),
        }
        review = Review.model_validate(fields, context=self._book.rubrics)
        return self._book.add(review, seen)

    def _changed(self, item: Item, correction: str) -> str:
        """Return a correction without the space around it; empty if it equals the text of the item."""
        text = self.rubric.corrected
        given = correction.strip()
        return "" if text and given == item.texts[text.field].strip() else given

    def _shuffled(self, name: str) -> list[str]:
        """Return the items in a person's order, grouped by question so that each question is read once."""

        def place(item: Item) -> tuple[str, str]:
            return digest([name, item.source, item.id[0]]), digest([name, item.token])

        return [item.token for item in sorted(self._items.values(), key=place)]

    def _shown(self, token: str, own: StoredReview | None) -> View:
        item = self._items[token]
        rubric = self.rubric
        said = own.review if own else None
        return {
            "token": token,
            "beside": _texts(item, rubric.beside),
            "main": _texts(item, rubric.main),
            "sentences": [
                {"source": source, "translation": text, "marks": marks} for source, text, marks in item.sentences
            ],
            "origin": dict(item.origin) or None,
            "verdict": said.verdict if said else None,
            "answers": dict(said.answers) if said else {},
            "comment": said.comment if said else "",
            "correctable": _texts(item, [rubric.corrected])[0] if rubric.corrected else None,
            "correction": said.correction if said else "",
            "revision": own.revision if own else "",
        }


def _is_open(said: Sequence[Review]) -> bool:
    """Return True if reviews need somebody who settles them: people disagree, or several are unsure alike."""
    return is_disputed(said) or (len(said) > 1 and is_unsettled(said))


def _texts(item: Item, shown: Sequence[RatedText]) -> list[View]:
    texts = ((each, item.texts[each.field]) for each in shown)
    return [{"label": each.label, "text": text, "folds": each.folds} for each, text in texts if text]


def opinion_view(review: Review) -> View:
    """Return what a person said, without the name."""
    return review.model_dump(include={"verdict", "answers", "comment", "correction"})


def _alphas(reviews: Sequence[Review]) -> Iterator[tuple[str, dict[str, float | int | None]]]:
    """Yield each point with its α, the interval and the number of items, from reviews of one kind.

    JSON has no NaN, so points with an undefined α are left out.
    """
    for rubric in rubrics_of(reviews).values():
        for point in rubric.points:
            alpha = ratings_of(reviews, rubric, point.name).agreement().alpha
            if not math.isnan(alpha.value):
                yield point.name, {"value": alpha.value, "low": alpha.low, "high": alpha.high, "items": alpha.units}


def _moved(path: Sequence[str], at: str, start: int, step: int) -> tuple[int, str | None]:
    """Return the position `step` places from `at` within the path, and its token; None past the end of the path."""
    place = path.index(at) if at in path else start
    if step:
        place = max(0, min(place + step, len(path) - 1))
    return place, path[place] if place < len(path) else None


def _is_waiting(kept: Mapping[Slot, StoredReview], token: str, name: str, seen: Container[tuple[str, str]]) -> bool:
    """Return True if a person can still give an independent verdict: they gave none and saw none of others."""
    return not ((token, name, False) in kept or (token, name, True) in kept or (token, name) in seen)
