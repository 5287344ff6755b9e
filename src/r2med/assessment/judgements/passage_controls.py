"""Planted controls for judges of passages, made from the labels of a dataset and the rankings of its systems.

They are of the pool's own kind: a judge that says yes to every passage on the topic gets those of near queries wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from r2med.assessment.panels.control_texts import names_answer, ordered
from r2med.assessment.panels.planted_controls import Control, in_turn
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import Rubric
from r2med.data.dataset import Dataset, Query
from r2med.data.text_copies import plain_words, repeats
from r2med.foundation.core.errors import unknown
from r2med.foundation.text.sentences import sentences

NEAR_QUERIES = 8
"""Number of near queries whose relevant passages become controls of a query."""
STRANGERS = 20
"""Number of random documents from which an unrelated one is chosen."""


@dataclass(frozen=True)
class LabelledDataset:
    """A dataset whose labels are known, and what systems return for its queries."""

    dataset: Dataset
    ranked: Mapping[str, Sequence[str]]
    """Query -> documents that systems return, best first."""

    @cached_property
    def queries(self) -> tuple[Query, ...]:
        """The queries with a relevant document."""
        grades = self.dataset.qrels
        return tuple(
            query for query in self.dataset.queries if any(grade > 0 for grade in grades.get(query.id, {}).values())
        )

    @cached_property
    def relevant_to(self) -> Mapping[str, Sequence[str]]:
        """Document -> the queries to which it is relevant."""
        found: dict[str, list[str]] = {}
        for query in self.queries:
            for document, grade in self.dataset.qrels[query.id].items():
                if grade > 0:
                    found.setdefault(document, []).append(query.id)
        return found

    def graded(self, query: Query, wanted: Callable[[int], bool]) -> dict[str, str]:
        """Return document -> text for those with these grades."""
        grades = self.dataset.qrels.get(query.id, {})
        return self.texts([document for document, grade in grades.items() if wanted(grade)])

    def best(self, query: Query) -> dict[str, str]:
        """Return document -> text for those with the best grade of a query."""
        highest = max(self.dataset.qrels.get(query.id, {}).values(), default=0)
        return self.graded(query, lambda grade: grade == highest > 0)

    def texts(self, documents: Sequence[str]) -> dict[str, str]:
        """Return document -> text, without documents that are empty or not in the corpus."""
        rows = zip(documents, self.dataset.corpus.rows(list(documents)).tolist(), strict=True)
        there = [(document, row) for document, row in rows if row >= 0]
        texts = self.dataset.corpus.texts([row for _, row in there])
        return {document: text for (document, _), text in zip(there, texts, strict=True) if text.strip()}

    def near(self, query: Query) -> list[str]:
        """Return documents that are relevant to other queries with another answer, those nearest to the query first.

        Those that systems return for the query are nearest. Then come those of queries that share most words with it.
        """
        own = self.dataset.qrels.get(query.id, {})
        others = [other for other in self.queries if other.id != query.id and not _same_answer(query, other)]
        known = {other.id for other in others}
        returned = [
            document
            for document in self.ranked.get(query.id, ())
            if document not in own and any(other in known for other in self.relevant_to.get(document, ()))
        ]
        words = {*plain_words(query.text).split()}
        alike = sorted(others, key=lambda other: (-_likeness(words, other), other.id))[:NEAR_QUERIES]
        following = [each for other in alike for each, grade in self.dataset.qrels[other.id].items() if grade > 0]
        return [document for document in dict.fromkeys((*returned, *following)) if document not in own]


def passage_controls(labelled: LabelledDataset, rubric: Rubric) -> dict[str, list[Control]]:
    """Return the controls of each kind that the rubric names, in random order, those of different queries first.

    Raises UserError for a kind that does not exist.
    """
    if wrong := [kind for kind in rubric.controls if kind not in _MAKERS]:
        raise unknown(f"kind of controls in the rubric {rubric.name}", wrong[0], _MAKERS)
    found = {}
    for kind, yes in rubric.controls.items():
        chance = random.Random(f"{labelled.dataset.name} {rubric.name} {kind}")
        queries = list(labelled.queries)
        chance.shuffle(queries)
        made = [
            [_control(labelled, rubric, kind, yes, query, *each) for each in _MAKERS[kind](labelled, query, chance)]
            for query in queries
        ]
        found[kind] = in_turn(made)
    return found


def _control(
    labelled: LabelledDataset, rubric: Rubric, kind: str, yes: bool, query: Query, document: str, text: str, answer: str
) -> Control:
    texts = {"query": query.text, "answer": answer, "text": text}
    return Control(Item((query.id, document), texts, rubric.name, source=labelled.dataset.name), kind, yes)


_Made = Iterator[tuple[str, str, str]]
"""Document, text and the answer that the judge is shown."""


def _relevant(labelled: LabelledDataset, query: Query, chance: random.Random) -> _Made:
    texts = list(labelled.best(query).items())
    chance.shuffle(texts)
    yield from ((document, text, query.answer) for document, text in texts)


def _not_relevant(labelled: LabelledDataset, query: Query, chance: random.Random) -> _Made:
    texts = list(labelled.graded(query, lambda grade: grade <= 0).items())
    chance.shuffle(texts)
    for document, text in texts:
        if not _is_evidence(labelled, query, text):
            yield document, text, query.answer


def _of_near_query(labelled: LabelledDataset, query: Query, chance: random.Random) -> _Made:
    for document, text in labelled.texts(labelled.near(query)).items():
        if not _is_evidence(labelled, query, text):
            yield document, text, query.answer


def _with_orders(labelled: LabelledDataset, query: Query, chance: random.Random) -> _Made:
    for document, text in _strangers(labelled, query, chance):
        yield document, ordered(text, chance), query.answer


def _unrelated(labelled: LabelledDataset, query: Query, chance: random.Random) -> _Made:
    return ((document, text, query.answer) for document, text in _strangers(labelled, query, chance))


def _without_answer(labelled: LabelledDataset, query: Query, chance: random.Random) -> _Made:
    for document, text in labelled.best(query).items() if query.answer else ():
        whole = sentences(text)
        left = [sentence for sentence in whole if not names_answer(sentence, query.answer)]
        if left and len(left) < len(whole):
            yield document, " ".join(left), query.answer


_MAKERS: Mapping[str, Callable[[LabelledDataset, Query, random.Random], _Made]] = {
    "labelled relevant": _relevant,
    "labelled not relevant": _not_relevant,
    "relevant to a near query": _of_near_query,
    "unrelated": _unrelated,
    "unrelated, with orders to the judge": _with_orders,
    "relevant, without its answer": _without_answer,
}
"""Kind of control -> how it is made."""


def _strangers(labelled: LabelledDataset, query: Query, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Yield random documents that have no label for a query and do not name its answer."""
    corpus = labelled.dataset.corpus
    judged = labelled.dataset.qrels.get(query.id, {})
    rows = chance.sample(range(len(corpus)), min(len(corpus), STRANGERS))
    for document, text in labelled.texts([each for each in corpus.ids(rows) if each not in judged]).items():
        if not _is_evidence(labelled, query, text):
            yield document, text


def _is_evidence(labelled: LabelledDataset, query: Query, text: str) -> bool:
    """Return True if a text names the answer, or is a copy of a relevant passage. It is not a control for no then."""
    return names_answer(text, query.answer) or any(
        repeats(text, other) for other in labelled.graded(query, lambda grade: grade > 0).values()
    )


def _likeness(words: set[str], other: Query) -> float:
    theirs = {*plain_words(other.text).split()}
    return len(words & theirs) / max(1, len(words | theirs))


def _same_answer(first: Query, second: Query) -> bool:
    return bool(first.answer and second.answer) and (
        names_answer(first.answer, second.answer) or names_answer(second.answer, first.answer)
    )
