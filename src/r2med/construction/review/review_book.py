"""The file of reviews. Every verdict is a row that is never changed, and the last verdict of a person counts.

Once a person has seen the verdicts of others on an item, their own verdict on it is frozen. Agreement is computed from
it, and any later verdict of this person is an adjudication.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from r2med.construction.review.review_items import review_items, reviews_file
from r2med.construction.review.reviews import Review
from r2med.core.errors import UserError
from r2med.store.rows import Rows

log = logging.getLogger("r2med")


@dataclass(frozen=True)
class StoredReview:
    """A review that counts, with its revision. A change must name the revision that it replaces."""

    review: Review
    revision: str


Slot = tuple[str, str, bool]
"""Key of one review that counts: the item, the annotator, and True for an adjudication."""


class ConflictError(Exception):
    """A person gave a verdict without seeing their own last one, for example in another tab."""

    def __init__(self, current: StoredReview | None) -> None:
        super().__init__("another verdict was stored before this one")
        self.current = current


class ReviewBook:
    """An open file of reviews, for use in a `with`. Threads can share it, and several processes can share the file."""

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, "file of reviews", "reviews", private=False)
        self._lock = threading.Lock()
        self._version = -1
        self._last = 0
        self._kept: dict[Slot, StoredReview] = {}
        self._seen: set[tuple[str, str]] = set()

    def __enter__(self) -> ReviewBook:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def kept(self) -> dict[Slot, StoredReview]:
        """Return the reviews that count, in the order in which they were made."""
        with self._lock:
            self._refresh()
            return dict(self._kept)

    def seen(self) -> set[tuple[str, str]]:
        """Return (item, annotator) for each item that a person saw together with the verdicts of others."""
        with self._lock:
            self._refresh()
            return set(self._seen)

    def note_seen(self, items: Iterable[str], annotator: str) -> None:
        """Record that a person sees the verdicts of others on these items. The record is on disk on return."""
        with self._lock:
            self._refresh()
            new = [item for item in items if (item, annotator) not in self._seen]
            rows = (json.dumps({"item": item, "seen_by": annotator}).encode("ascii") for item in new)
            if new:
                self._rows.put({self._next_key(): row for row in rows})
            self._seen.update((item, annotator) for item in new)

    def add(self, review: Review, seen: str | None) -> StoredReview:
        """Store a review. It is on disk on return.

        `seen` is the revision that it replaces, "" if there was none, or None to replace any. Raises ConflictError if
        the stored revision is a different one. A review that equals the stored one is no conflict and is not stored
        again.
        """
        with self._lock:
            self._refresh()
            own = self._kept.get(_slot(review))
            counted = self._counted(review)
            current = self._kept.get(_slot(counted))
            if current is not None and _same(current.review, counted):
                return current
            if seen is not None and seen not in {each.revision if each else "" for each in (current, own)}:
                raise ConflictError(current)
            return self._append([counted])[-1]

    def add_all(self, reviews: Iterable[Review]) -> int:
        """Store many reviews, all or none, and return how many were new.

        Of several reviews of an item by one person, the one with the newest date counts, or the last if there are no
        dates. A stored review is replaced only by a review with a newer date.
        """
        newest: dict[Slot, Review] = {}
        for review in reviews:
            known = newest.get(_slot(review))
            if known is None or _date(review) >= _date(known):
                newest[_slot(review)] = review
        with self._lock:
            self._refresh()
            pairs = [(review, self._kept.get(slot)) for slot, review in newest.items()]
            new = [review for review, kept in pairs if kept is None or _replaces(review, kept.review)]
            return len(self._append([self._counted(review) for review in new]))

    def _counted(self, review: Review) -> Review:
        """Return a review as it counts: a changed verdict of a person who saw those of others is an adjudication."""
        own = self._kept.get((review.item, review.annotator, False))
        if (review.item, review.annotator) not in self._seen or (own and own.review.verdict == review.verdict):
            return review
        return review.model_copy(update={"adjudicated": True})

    def _append(self, reviews: Sequence[Review]) -> list[StoredReview]:
        rows, kept = {}, []
        for review in reviews:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            stamped = review if review.at else review.model_copy(update={"at": now})
            key = self._next_key()
            rows[key] = json.dumps(stamped.model_dump()).encode("ascii")
            kept.append(StoredReview(stamped, key.hex()))
        self._rows.put(rows)
        for each in kept:
            self._place(each)
        return kept

    def _next_key(self) -> bytes:
        """Return a key from the clock that is greater than the last one. Keys order the rows of all processes."""
        self._last = max(self._last + 1, time.time_ns())
        return self._last.to_bytes(8, "big")

    def _refresh(self) -> None:
        """Read the file again if another process has written to it."""
        version = self._rows.database.read(lambda sql: sql.execute("PRAGMA data_version").fetchone()[0])
        if version == self._version:
            return
        self._version = version
        self._kept.clear()
        self._seen.clear()
        for key, value in sorted(self._rows.items()):
            self._last = max(self._last, int.from_bytes(key, "big"))
            row = json.loads(value)
            if "seen_by" in row:
                self._seen.add((row["item"], row["seen_by"]))
            else:
                self._place(StoredReview(Review(**row), key.hex()))

    def _place(self, kept: StoredReview) -> None:
        slot = _slot(kept.review)
        self._kept.pop(slot, None)  # the newest review is the last one
        self._kept[slot] = kept


def _slot(review: Review) -> Slot:
    return review.item, review.annotator, review.adjudicated


def _date(review: Review) -> datetime:
    """Return the date of a review. A review without a readable date counts as older than all others."""
    try:
        date = datetime.fromisoformat(review.at)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _replaces(review: Review, kept: Review) -> bool:
    return not _same(review, kept) and _date(review) > _date(kept)


def _same(first: Review, second: Review) -> bool:
    return (first.verdict, first.comment) == (second.verdict, second.comment)


def read_reviews(source: Path | str) -> list[Review]:
    """Return the reviews of the candidates of a build or a table.

    Reviews of texts that have changed since are left out, and their number is logged.
    """
    path = reviews_file(Path(source))
    if not path.is_file():
        return []
    tokens = {item.token for item in review_items(Path(source))}
    with ReviewBook(path) as book:
        reviews = [kept.review for kept in book.kept().values()]
    if outdated := sum(review.item not in tokens for review in reviews):
        message = "%s: reviews left out because their texts changed or are gone: %d (r2med review %s asks again)"
        log.warning(message, path, outdated, source)
    return [review for review in reviews if review.item in tokens]


def add_reviews(source: Path | str, reviews: Iterable[Review]) -> int:
    """Add reviews that were made elsewhere, all or none, and return how many were new.

    Raises UserError if a review does not belong to a candidate.
    """
    tokens = {item.pair: item.token for item in review_items(Path(source))}
    placed = []
    for review in reviews:
        if review.pair not in tokens:
            raise UserError(f"{source} has no candidate {review.chunk!r} for the question {review.question!r}")
        placed.append(review.model_copy(update={"item": tokens[review.pair]}))
    with ReviewBook(reviews_file(Path(source))) as book:
        return book.add_all(placed)
