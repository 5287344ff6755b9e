"""People review nuggets: the items of the page, and the nuggets that are left after their reviews."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.review_kinds import NUGGET_KIND
from r2med.assessment.review.reviews import Review
from r2med.construction.items import PageChunk, SourceQuestion
from r2med.construction.review_items import ReviewItem
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nugget, Nuggets, read_nuggets
from r2med.foundation.core.errors import UserError

NUGGET_GUIDELINE = """\
A nugget is one fact that a good answer to the question contains.

- **Vital**: an answer without it is not a good answer.
- **Useful**: it helps, but an answer can do without it.
- **Wrong or useless**: it is not true, not in the reference answer, or has nothing to do with the question.

Judge each fact alone. Whether another fact says the same is for a comment."""


def nugget_items(nuggets: Nuggets, dataset: Dataset) -> list[tuple[Nugget, ReviewItem]]:
    """Return what people see of each nugget. Nuggets of unknown queries are left out."""
    queries = {query.id: query for query in dataset.queries}
    items = []
    for nugget in nuggets:
        if query := queries.get(nugget.query):
            question = SourceQuestion(id=query.id, text=query.text, answer=query.answer)
            chunk = PageChunk(id=nugget.id, text=nugget.text, page="")
            items.append((nugget, ReviewItem(question, chunk, kind=NUGGET_KIND.name)))
    return items


def reviewed_nuggets(file: Path, dataset: Dataset) -> tuple[Nuggets, int]:
    """Return the nuggets of a file after the reviews of people, and the number of those that they dropped.

    The last settlement of a disagreement counts. Without one, most votes decide. A nugget with a tie stays as it is and
    is not marked as reviewed. Raises UserError if there is no review.
    """
    path = reviews_file(file)
    if not path.is_file():
        raise UserError(f"people have reviewed nothing of {file} yet: r2med review --nuggets {file}")
    with ReviewBook(path) as book:
        reviews = [stored.review for stored in book.kept().values()]
    by_item: dict[str, list[Review]] = {}
    for review in reviews:
        by_item.setdefault(review.item, []).append(review)
    words = [
        (nugget, _decided(by_item.get(item.token, ()))) for nugget, item in nugget_items(read_nuggets(file), dataset)
    ]
    if not any(word for _, word in words):
        raise UserError(f"people have decided nothing about {file} yet: r2med review --nuggets {file}")
    kept = [_reviewed(nugget, word) for nugget, word in words if word != "drop"]
    return Nuggets.of(kept), len(words) - len(kept)


def _decided(reviews: Sequence[Review]) -> str:
    """Return the word with the most votes. Empty without votes, or if two words have equal votes."""
    said = [review.answers["importance"] for review in reviews if not review.adjudicated]
    if settled := [review.answers["importance"] for review in reviews if review.adjudicated]:
        return settled[-1]
    (first, votes), (_, others) = [*Counter(said).most_common(2), ("", 0), ("", 0)][:2]
    return first if votes > others else ""


def _reviewed(nugget: Nugget, word: str) -> Nugget:
    return replace(nugget, vital=word == "vital", reviewed=True) if word else nugget
