"""People review the labels of an overlay: the items of the page, and the overlay that their reviews become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from r2med.assessment.review.review_book import ReviewBook, reviews_file
from r2med.assessment.review.reviews import Review
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS, highest_grade
from r2med.data.dataset import Dataset
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.terminal_text import quoted

RELEVANCE = "relevance"
"""The rubric by which people review labels."""

REVIEWED_QUERIES = 30
"""Number of queries of each dataset whose pool people label."""


@dataclass(frozen=True)
class LabelledPair:
    """A query and a document that judges labelled, and that people are asked about."""

    dataset: str
    query: str
    document: str
    highest: int
    """The highest grade of the dataset, on whose scale the label will be."""


def pairs_to_label(overlay: Overlay, datasets: Mapping[str, Dataset], queries: int) -> list[LabelledPair]:
    """Return what judges labelled for the first queries of each dataset, in the order of their ids.

    The first query of every dataset comes first, then the second of every one, and so on. So all reviewers have the
    same order, and more queries contain the fewer ones.
    """
    found: list[tuple[int, LabelledPair]] = []
    for name, dataset in datasets.items():
        pools: dict[str, set[str]] = {}
        for label in overlay.of(name):
            if label.judge:
                pools.setdefault(label.query, set()).add(label.document)
        highest = highest_grade(dataset.qrels)
        for number, query in enumerate(sorted(pools)[:queries]):
            found += [(number, LabelledPair(name, query, document, highest)) for document in sorted(pools[query])]
    return [pair for _, pair in sorted(found, key=lambda each: each[0])]


def label_items(pairs: Sequence[LabelledPair], datasets: Mapping[str, Dataset]) -> list[tuple[LabelledPair, Item]]:
    """Return what people see of each pair. It shows neither labels of judges nor names of systems.

    Documents that the dataset does not have are left out.
    """
    queries = {(name, query.id): query for name, dataset in datasets.items() for query in dataset.queries}
    items = []
    for pair in pairs:
        corpus = datasets[pair.dataset].corpus
        rows = [row for row in corpus.rows([pair.document]).tolist() if row >= 0]
        query = queries[pair.dataset, pair.query]
        origin = {"title": "", "url": "", "source": pair.dataset}
        for text in corpus.texts(rows):
            texts = {"query": query.text, "answer": query.answer, "text": text}
            id_ = query.id, pair.document
            items.append((pair, Item(id_, texts, RELEVANCE, source=pair.dataset, origin=origin)))
    return items


def noted(book: ReviewBook, items: Sequence[tuple[LabelledPair, Item]]) -> list[Item]:
    """Return the items, and store in the file of reviews what they are about."""
    book.note_pairs({item.token: asdict(pair) for pair, item in items})
    return [item for _, item in items]


def people_overlay(file: Path, name: str) -> Overlay:
    """Return the labels that people gave on the review page of an overlay.

    Names of people are replaced by numbers, because overlays are passed on. Each person's label is kept. If a
    disagreement was settled, only the settlement is. Raises UserError if there is no review.
    """
    path = reviews_file(file)
    if not path.is_file():
        raise UserError(f"people have reviewed nothing of {file} yet: r2med review serve {quoted(file)}")
    with ReviewBook(path) as book:
        reviews = [kept.review for kept in book.kept().values()]
        pairs = {item: LabelledPair(**fields) for item, fields in book.pairs().items()}
    numbers = _reviewer_numbers(reviews)
    settled = {review.item: review for review in reviews if review.adjudicated}
    counted = [review for review in reviews if review.item not in settled]
    labels = [
        _label(review, pairs[review.item], numbers[review.annotator])
        for review in (*counted, *settled.values())
        if review.item in pairs
    ]
    if not labels:
        raise UserError(f"people have reviewed nothing of {file} yet: r2med review serve {quoted(file)}")
    return Overlay(name, tuple(labels))


def _reviewer_numbers(reviews: Iterable[Review]) -> dict[str, str]:
    """Return name -> "reviewer 1" and so on, in the order of the first reviews, so that later exports agree."""
    first: dict[str, str] = {}
    for review in reviews:
        first[review.annotator] = min(review.at, first.get(review.annotator, review.at))
    names = sorted(first, key=lambda name: (first[name], name))
    return {name: f"reviewer {number}" for number, name in enumerate(names, 1)}


def _label(review: Review, pair: LabelledPair, reviewer: str) -> OverlayLabel:
    (said,) = review.answers.values()
    return OverlayLabel(
        dataset=pair.dataset,
        query=pair.query,
        document=pair.document,
        grade=RUBRICS[RELEVANCE].grade(said, pair.highest),
        said=said,
        reviewer=reviewer,
        at=review.at,
        why=review.comment,
    )
