"""The values that flow from data to everything else: Query, Qrels, Dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from r2med.data.dataset_cards import ANY_DATASET, DatasetCard, Instruction, cards, groups
from r2med.data.grades import HIGHEST_GRADE, GradeError, whole_grade
from r2med.foundation.core.errors import UserError, refuse_table
from r2med.foundation.store import digest
from r2med.foundation.store.dataset_labels import dataset_label
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.data.corpus import Corpus


@dataclass(frozen=True, slots=True)
class Query:
    """One information need. Its answer, body system and need of inference never reach a retriever."""

    id: str
    """The id of the query."""
    text: str
    """The query."""
    answer: str = ""
    """The answer, if it is known."""
    body_system: str = ""
    """The body system of the query, if it is known."""
    excluded: tuple[str, ...] = ()
    """Ids of documents that are left out of the results."""
    needs_inference: str = ""
    """Reviewers' answer to "does it need inference?": yes, no or unsure. Empty if it was not reviewed."""
    options: tuple[str, ...] = ()
    """The options of a multiple-choice question. One of them is the answer. Empty for an open question."""


@dataclass(frozen=True, slots=True)
class QueryAspect:
    """One aspect of the answer to a query."""

    weight: float
    """The importance of the aspect, as the dataset states it."""
    documents: tuple[str, ...]
    """The relevant documents that support it."""


Aspects = Mapping[str, Mapping[str, QueryAspect]]
"""Query id -> id of an aspect -> the aspect."""


class Qrels(Mapping[str, Mapping[str, int]]):
    """Judgements: query id -> document id -> grade. Every query in it counts in the denominator of every mean.

    Grades are whole numbers, and a document with a grade below 1 is not relevant. Raises UserError for another grade.
    """

    def __init__(self, grades: Mapping[str, Mapping[str, int]]) -> None:
        if not isinstance(grades, Mapping):
            raise UserError(f"judgements are {_SHAPE}, not {type(grades).__name__}")
        self._grades = {query: _checked(query, documents) for query, documents in grades.items()}

    def __getitem__(self, query: str) -> Mapping[str, int]:
        return self._grades[query]

    def __iter__(self) -> Iterator[str]:
        return iter(self._grades)

    def __len__(self) -> int:
        return len(self._grades)

    def __repr__(self) -> str:
        return f"Qrels({counted(len(self), 'query', 'queries')}, {counted(self.positives, 'positive')})"

    @cached_property
    def positives(self) -> int:
        """The number of judgements with a grade above 0."""
        return sum(grade > 0 for documents in self._grades.values() for grade in documents.values())

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the contents, independent of their order."""
        return digest(sorted((q, sorted(d.items())) for q, d in self._grades.items()))


_SHAPE = "query id -> document id -> grade, a whole number"


def _checked(query: str, documents: Mapping[str, int]) -> dict[str, int]:
    """Return the judgements of a query with grades as ints. Raises UserError if one is not a grade."""
    if not isinstance(documents, Mapping):
        raise UserError(f"query {query!r}: judgements are {_SHAPE}, not {type(documents).__name__}")
    if all(type(grade) is int and -HIGHEST_GRADE <= grade <= HIGHEST_GRADE for grade in documents.values()):
        return dict(documents)  # twice as fast as the loop
    grades: dict[str, int] = {}
    for document, grade in documents.items():
        try:
            grades[document] = whole_grade(grade)
        except GradeError as error:
            raise UserError(f"query {query!r}, document {document!r}: {error}") from None
    return grades


@dataclass(frozen=True, slots=True)
class AppliedOverlay:
    """An overlay whose labels are part of the judgements of a dataset."""

    name: str
    """The name of its file."""
    digest: str
    """A digest of its labels."""
    labels: int
    """Number of its labels for this dataset."""
    reviewed: int = 0
    """Number of these labels that people gave."""
    trust: str = ""
    """What readers of its labels must know: "not tested" if a judge had too few planted controls."""


@dataclass(frozen=True)
class Dataset:
    """Queries, the corpus they search, and the judgements; with the card that describes them, if there is one."""

    name: str
    """The name of the dataset."""
    queries: Sequence[Query]
    """The queries."""
    corpus: Corpus
    """The documents."""
    qrels: Qrels
    """The judgements."""
    card: DatasetCard | None = None
    """The card of the dataset, if it has one."""
    folder: Path | None = None
    """The folder of recorded generations (`METHOD/LLM/query_with_hydoc.jsonl`)."""
    source: str = ""
    """The source of the dataset, REPOSITORY@REVISION; empty for a user's folder."""
    overlays: tuple[AppliedOverlay, ...] = ()
    """The overlays whose labels are among the judgements."""
    notices: tuple[str, ...] = field(default=(), compare=False)
    """Remarks about the files, one sentence each."""
    aspects: Aspects = field(default_factory=dict)
    """Query id -> id of an aspect -> the aspect, for datasets whose relevant documents belong to aspects."""
    part: str = ""
    """What was asked of it, if that is only a part or has other questions, such as "the first 5 questions"."""
    own_folder: Path | None = field(default=None, compare=False)
    """The folder that a user named; None for a dataset of a name, of the hub or in memory."""

    @classmethod
    def of(
        cls,
        queries: Mapping[str, str] | Iterable[Query],
        corpus: Mapping[str, str] | Iterable[tuple[str, str]] | Corpus,
        qrels: Mapping[str, Mapping[str, int]] | None = None,
        name: str = "mine",
    ) -> Dataset:
        """Return a dataset of values in memory: queries and documents as id -> text, judgements as in `Qrels`.

        Raises UserError if an id is repeated, or if the judgements name an unknown query or document.
        """
        from r2med.data.corpus import Corpus

        for what, given, shape in (
            ("queries", queries, "id -> text"),
            ("corpus", corpus, "id -> text"),
            ("qrels", qrels, "query id -> document id -> grade"),
        ):
            refuse_table(given, what, shape)
        asked = [Query(*pair) for pair in queries.items()] if isinstance(queries, Mapping) else list(queries)
        if not all(isinstance(query, Query) and isinstance(query.text, str) for query in asked):
            raise UserError(f"{name}: queries are id -> text, or objects of r2med.Query")
        try:
            pairs = corpus.items() if isinstance(corpus, Mapping) else corpus
            documents = corpus if isinstance(corpus, Corpus) else Corpus.of(pairs)
        except (TypeError, ValueError) as error:
            raise UserError(f"{name}: a corpus is id -> text, both strings, every id once ({error})") from None
        grades = Qrels(qrels or {})
        relevant = [document for judged in grades.values() for document, grade in judged.items() if grade > 0]
        ids = Counter(query.id for query in asked)
        if repeated := [query for query, count in ids.items() if count > 1]:
            raise UserError(f"{name}: query id {repeated[0]!r} is repeated")
        missing = [document for document, row in zip(relevant, documents.rows(relevant), strict=True) if row < 0]
        if lost := [*(query for query in grades if query not in ids), *missing]:
            raise UserError(f"{name}: the judgements name {lost[0]!r}, which is neither a query nor a document")
        return cls(name, tuple(asked), documents, grades)

    def _repr_html_(self) -> str:
        rows = [(query.id, query.text[:200], len(self.qrels.get(query.id, ()))) for query in self.queries[:5]]
        from r2med.foundation.pages.page import Table

        return Table.of(("query", "text", "judged documents"), rows, repr(self))._repr_html_()

    def __repr__(self) -> str:
        sizes = f"{counted(len(self.queries), 'query', 'queries')}, {counted(len(self.corpus), 'document')}"
        return f"Dataset({self.name}: {sizes}, {self.qrels!r})"

    def require_scorable(self) -> None:
        """Raise UserError if there is nothing to score, because a mean over no queries would look like a score of 0."""
        missing = [noun for noun, rows in (("queries", self.queries), ("judgements", self.qrels)) if not rows]
        if missing:
            raise UserError(
                f"{self.name} has no {missing[0]}: nothing can be scored "
                "(r2med data check shows more; r2med search and r2med serve need none)"
            )

    def only(self, queries: Iterable[str]) -> Dataset:
        """Return the same dataset with only these queries, in their original order."""
        wanted = set(queries)
        judged = {query: grades for query, grades in self.qrels.items() if query in wanted}
        aspects = {query: each for query, each in self.aspects.items() if query in wanted}
        kept = [each for each in self.queries if each.id in wanted]
        return replace(self, queries=kept, qrels=Qrels(judged), aspects=aspects)

    @property
    def word(self) -> str:
        """The word to type for the dataset: its name, or its folder if the name is not known."""
        known = self.name in cards() or self.name in groups()["demo"]
        return self.name if known or self.folder is None else str(self.folder)

    @property
    def label(self) -> str:
        """The name of the dataset in the store. It contains the folder that a user named."""
        return dataset_label(self.name, self.own_folder)

    @property
    def instruction(self) -> Instruction:
        """The instruction for instruction-tuned models: that of the card, or one that fits any medical dataset."""
        return (self.card.instruction if self.card else None) or ANY_DATASET

    @cached_property
    def by_text(self) -> Mapping[str, Query]:
        """The queries by their texts, without surrounding white space."""
        return {" ".join(query.text.split()): query for query in self.queries}

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the corpus, queries with options, judgements and aspects, without names and paths."""
        queries = [(q.id, q.text, q.answer, q.body_system, q.excluded) for q in self.queries]
        aspects = [
            (query, name, aspect.weight, aspect.documents)
            for query, each in sorted(self.aspects.items())
            for name, aspect in sorted(each.items())
        ]
        options = [(q.id, q.options) for q in self.queries if q.options]
        further: list[object] = [["options", options]] if options else []
        further += [aspects] if aspects else []
        return digest([self.corpus.fingerprint, queries, self.qrels.fingerprint, *further])
