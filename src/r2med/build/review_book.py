"""The file of reviews: every verdict is a row that is never changed, and the last one of a person counts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from r2med.build.review_items import ReviewItem, review_items, reviews_file
from r2med.build.reviews import Review
from r2med.errors import UserError
from r2med.store.rows import Rows


@dataclass(frozen=True)
class Kept:
    """A review that counts, and its revision: who changes it says which one they saw."""

    review: Review
    revision: str


Slot = tuple[str, str, bool]
"""What holds one review that counts: an item, an annotator, and whether it is an adjudication."""


class ConflictError(Exception):
    """A verdict that was given without having seen the last one of the same person, as in another tab."""

    def __init__(self, current: Kept | None) -> None:
        super().__init__("another verdict came before this one")
        self.current = current


class ReviewBook:
    """An open file of reviews; use it in a `with`. Any thread may use it, several processes may share the file."""

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, "file of reviews", "reviews")
        self._lock = threading.Lock()
        self._version = -1
        self._last = 0
        self._kept: dict[Slot, Kept] = {}

    def __enter__(self) -> ReviewBook:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def kept(self) -> dict[Slot, Kept]:
        """Return the reviews that count, in the order in which they were given."""
        with self._lock:
            self._refresh()
            return dict(self._kept)

    def add(self, review: Review, seen: str | None) -> Kept:
        """Keep a review; it is on the disk when this returns.

        `seen` is the revision it replaces, "" for none, None for whichever there is. Raises ConflictError if it is
        another one by now; a review that says what is kept already is no conflict, and not kept twice.
        """
        with self._lock:
            self._refresh()
            slot = review.item, review.annotator, review.adjudicated
            current = self._kept.get(slot)
            if current is not None and _same(current.review, review):
                return current
            if seen is not None and seen != (current.revision if current else ""):
                raise ConflictError(current)
            return self._append([review])[-1]

    def add_all(self, reviews: Iterable[Review]) -> int:
        """Keep many reviews, all or none, and return how many were new."""
        with self._lock:
            self._refresh()
            slots = (
                (review, self._kept.get((review.item, review.annotator, review.adjudicated))) for review in reviews
            )
            return len(self._append([review for review, kept in slots if not (kept and _same(kept.review, review))]))

    def _append(self, reviews: Sequence[Review]) -> list[Kept]:
        rows, kept = {}, []
        for review in reviews:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            stamped = review if review.at else review.model_copy(update={"at": now})
            # By the clock, but always after the last: keys are the order of the rows, here and in other processes.
            self._last = max(self._last + 1, time.time_ns())
            key = self._last.to_bytes(8, "big")
            rows[key] = json.dumps(stamped.model_dump()).encode("ascii")
            kept.append(Kept(stamped, key.hex()))
        self._rows.put(rows)
        for each in kept:
            self._place(each)
        return kept

    def _refresh(self) -> None:
        """Read the file again if another process wrote to it."""
        version = self._rows.database.read(lambda sql: sql.execute("PRAGMA data_version").fetchone()[0])
        if version == self._version:
            return
        self._version = version
        self._kept.clear()
        for key, value in sorted(self._rows.items()):
            self._last = max(self._last, int.from_bytes(key, "big"))
            self._place(Kept(Review(**json.loads(value)), key.hex()))

    def _place(self, kept: Kept) -> None:
        slot = kept.review.item, kept.review.annotator, kept.review.adjudicated
        self._kept.pop(slot, None)  # the newest stands last
        self._kept[slot] = kept


def _same(first: Review, second: Review) -> bool:
    return (first.verdict, first.comment) == (second.verdict, second.comment)


def read_reviews(source: Path | str) -> list[Review]:
    """Return what people say of the candidates of a build or of a table, as its texts are now."""
    path = reviews_file(Path(source))
    if not path.is_file():
        return []
    tokens = {item.token for item in review_items(Path(source))}
    with ReviewBook(path) as book:
        return [kept.review for kept in book.kept().values() if kept.review.item in tokens]


def add_reviews(source: Path | str, reviews: Iterable[Review], items: Sequence[ReviewItem] | None = None) -> int:
    """Add reviews that were made elsewhere, all or none; return how many were new. Raises UserError if one is of no
    candidate."""
    given = review_items(Path(source)) if items is None else items
    tokens = {item.pair: item.token for item in given}
    placed = []
    for review in reviews:
        if review.pair not in tokens:
            raise UserError(f"{source} has no candidate {review.chunk!r} for the question {review.question!r}")
        placed.append(review.model_copy(update={"item": tokens[review.pair]}))
    with ReviewBook(reviews_file(Path(source))) as book:
        return book.add_all(placed)
