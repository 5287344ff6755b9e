"""The file of reviews. Every verdict is a row that is never changed, and the last verdict of a person counts.

Once a person has seen the verdicts of others on an item, their own verdict on it is frozen. Agreement is computed from
it, and any later verdict of this person is an adjudication.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from r2med.assessment.review.reviews import Review, Rubrics
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.foundation.store.rows import Rows


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


def reviews_file(source: Path) -> Path:
    """Return the path of the file of reviews of a build or a table."""
    return source / "reviews.sqlite" if source.is_dir() else source.with_name(f"{source.name}.reviews.sqlite")


class ReviewBook:
    """An open file of reviews, for use in a `with`. Threads can share it, and several processes can share the file."""

    def __init__(self, path: Path, rubrics: Rubrics = RUBRICS) -> None:
        """Open a file of reviews. Reviews of kinds that are not among the rubrics are left alone and not returned."""
        self._rows = Rows(path, "file of reviews", "reviews", private=False)
        self._rubrics = rubrics
        self._lock = threading.Lock()
        self._version = -1
        self._last = 0
        self._kept: dict[Slot, StoredReview] = {}
        self._seen: set[tuple[str, str]] = set()
        self._pairs: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> ReviewBook:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    @property
    def rubrics(self) -> Rubrics:
        """The rubrics of the reviews, by name."""
        return self._rubrics

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

    def reviewers(self) -> dict[str, set[str]]:
        """Return the people who gave an independent verdict on each item."""
        people: dict[str, set[str]] = {}
        for item, annotator, adjudicated in self.kept():
            if not adjudicated:
                people.setdefault(item, set()).add(annotator)
        return people

    def note_pairs(self, pairs: Mapping[str, Mapping[str, Any]]) -> None:
        """Store which labels are reviewed: item -> fields of a `LabelledPair`."""
        with self._lock:
            self._refresh()
            new = {item: dict(fields) for item, fields in pairs.items() if self._pairs.get(item) != fields}
            rows = (json.dumps({"item": item, "pair": fields}).encode("ascii") for item, fields in new.items())
            if new:
                self._rows.put({self._next_key(): row for row in rows})
            self._pairs.update(new)

    def pairs(self) -> dict[str, dict[str, Any]]:
        """Return which labels are reviewed, by item."""
        with self._lock:
            self._refresh()
            return dict(self._pairs)

    def add(self, review: Review, seen: str | None) -> StoredReview:
        """Store a review. It is on disk on return.

        `seen` is the revision that it replaces, "" if there was none, or None to replace any. Raises ConflictError if
        the stored revision is a different one. A review that equals the stored one is no conflict and is not stored
        again.
        """
        found: StoredReview | None = None
        is_new, is_conflict = False, False

        def make() -> dict[bytes, bytes]:
            # Read and written as one, so that another server on this file cannot store a verdict in between.
            nonlocal found, is_new, is_conflict
            self._refresh()
            own = self._kept.get(_slot(review))
            counted = self._counted(review)
            found = self._kept.get(_slot(counted))
            is_same = found is not None and _same(found.review, counted)
            is_conflict = not is_same and seen is not None and seen not in {_revision(found), _revision(own)}
            is_new = not is_same and not is_conflict
            rows, kept = self._stamped([counted]) if is_new else ({}, [])
            found = kept[-1] if kept else found
            return rows

        with self._lock:
            self._rows.put_from(make)
            if is_conflict or found is None:
                raise ConflictError(found)
            if is_new:
                self._place(found)
            return found

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
        if (review.item, review.annotator) not in self._seen or (own and own.review.opinion == review.opinion):
            return review
        return review.model_copy(update={"adjudicated": True})

    def _append(self, reviews: Sequence[Review]) -> list[StoredReview]:
        rows, kept = self._stamped(reviews)
        self._rows.put(rows)
        for each in kept:
            self._place(each)
        return kept

    def _stamped(self, reviews: Sequence[Review]) -> tuple[dict[bytes, bytes], list[StoredReview]]:
        """Return the rows of new reviews with their dates, and the reviews as they will be stored."""
        rows, kept = {}, []
        for review in reviews:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            stamped = review if review.at else review.model_copy(update={"at": now})
            key = self._next_key()
            rows[key] = json.dumps(stamped.model_dump()).encode("ascii")
            kept.append(StoredReview(stamped, key.hex()))
        return rows, kept

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
        self._pairs.clear()
        for key, value in sorted(self._rows.items()):
            self._last = max(self._last, int.from_bytes(key, "big"))
            row = json.loads(value)
            if "seen_by" in row:
                self._seen.add((row["item"], row["seen_by"]))
            elif "pair" in row:
                self._pairs[row["item"]] = row["pair"]
            elif row.get("kind") in self._rubrics:
                self._place(StoredReview(Review.model_validate(row, context=self._rubrics), key.hex()))

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


def _revision(stored: StoredReview | None) -> str:
    return stored.revision if stored else ""


def _same(first: Review, second: Review) -> bool:
    return (first.opinion, first.comment) == (second.opinion, second.comment)
