"""People review nuggets: the items of the page, and the nuggets that are left after their reviews."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.reviews import Review, decided_correction, decided_reply
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.data.dataset import Dataset
from r2med.data.nuggets_file import Nugget, Nuggets, read_nuggets
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.terminal_text import quoted

NUGGET, IMPORTANCE = "nugget", "importance"
"""The rubric of nuggets, and its point."""


def nugget_items(nuggets: Nuggets, dataset: Dataset) -> list[tuple[Nugget, Item]]:
    """Return what people see of each nugget. Nuggets of unknown queries are left out."""
    queries = {query.id: query for query in dataset.queries}
    items = []
    for nugget in nuggets:
        if query := queries.get(nugget.query):
            texts = {"query": query.text, "answer": query.answer, "nugget": nugget.text}
            if item := RUBRICS[NUGGET].item((query.id, nugget.id), texts):
                items.append((nugget, item))
    return items


def reviewed_nuggets(file: Path, dataset: Dataset) -> tuple[Nuggets, int]:
    """Return the nuggets of a file after the reviews of people, and the number of those that they dropped.

    A nugget that is undecided stays as it is and is not marked as reviewed. Raises UserError if there is no review.
    """
    path = reviews_file(file)
    if not path.is_file():
        raise UserError(f"people have reviewed nothing of {file} yet: r2med review serve {quoted(file)}")
    by_item: dict[str, list[Review]] = {}
    with ReviewBook(path) as book:
        for stored in book.kept().values():
            by_item.setdefault(stored.review.item, []).append(stored.review)
    said = [(nugget, by_item.get(item.token, [])) for nugget, item in nugget_items(read_nuggets(file), dataset)]
    words = [decided_reply(reviews, IMPORTANCE)[0] for _, reviews in said]
    if not any(words):
        raise UserError(f"people have decided nothing about {file} yet: r2med review serve {quoted(file)}")
    kept = [_reviewed(*each, word) for each, word in zip(said, words, strict=True) if word != "drop"]
    return Nuggets.of(kept), len(words) - len(kept)


def _reviewed(nugget: Nugget, reviews: Sequence[Review], word: str | None) -> Nugget:
    """Return a nugget as people decided: vital or not, and with the text that they corrected."""
    if not word:
        return nugget
    return replace(nugget, text=decided_correction(reviews) or nugget.text, vital=word == "vital", reviewed=True)
