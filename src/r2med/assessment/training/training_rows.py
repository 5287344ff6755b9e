"""The rows of a training set: for each query its positives, and negatives that somebody judged to be irrelevant.

A document without a label is never a negative, because it may be relevant. What is doubtful is left out, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Literal

from r2med.assessment.audit.answer_leaks import is_open_answer
from r2med.assessment.audit.query_metadata import query_metadata
from r2med.assessment.training.files_beside_dataset import judged_candidates, pages_of
from r2med.assessment.training.query_groups import REASONING, QueryGroups, diagnoses_of, relevant_documents
from r2med.data.dataset import Dataset, Query
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.data.text_copies import CopyKind, find_copies
from r2med.foundation.text.named import named_in
from r2med.foundation.text.synonyms import Synonyms

MIDDLE_GRADE = 1.0
"""Mean grade of judges from which an irrelevant passage is doubtful: "same field" on a scale from 0 to 3."""
RELATED_COPIES: tuple[CopyKind, ...] = ("equal", "near", "contained", "half")
"""Copies of relevant documents in a wide sense. None of them is a negative."""

Role = Literal["positive", "negative"]
LeftOut = Literal[
    "doubtful", "copy of a relevant document", "page of a relevant document",
    "relevant to a query of its group", "names the answer", "relevant to a held-out query",
    "repeats a text of a held-out query", "not in the corpus",
]  # fmt: skip
"""Why a judged document is not a row."""


@dataclass(frozen=True)
class TrainingPair:
    """A query and a document with its role, and who said so."""

    query: str
    document: str
    role: Role
    grade: int
    """The grade on the scale of the dataset."""
    by: tuple[str, ...]
    """Who gave the label: the dataset, judges (LLMs) by name, or people."""
    said: str = ""
    """What judges said on the scale of their prompt, or the mean scores of a build."""


@dataclass(frozen=True)
class TrainingQuery:
    """One query with its documents, the best and the hardest first."""

    query: Query
    positives: tuple[TrainingPair, ...]
    negatives: tuple[TrainingPair, ...] = ()
    reasoning: str = ""


@dataclass(frozen=True)
class TrainingRows:
    """All queries that can be trained with, and how many judged documents were left out, by reason."""

    dataset: Dataset
    queries: tuple[TrainingQuery, ...]
    left_out: Mapping[LeftOut, int] = field(default_factory=dict)

    @property
    def pairs(self) -> Iterator[TrainingPair]:
        """The documents of all queries."""
        for each in self.queries:
            yield from (*each.positives, *each.negatives)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Document -> its text."""
        names = list(dict.fromkeys(pair.document for pair in self.pairs))
        return dict(zip(names, self.dataset.corpus.texts(self.dataset.corpus.rows(names)), strict=True))

    def without(self, held_out: Collection[str]) -> TrainingRows:
        """Return the rows without some queries, and without negatives that are relevant to one of them."""
        theirs = {pair.document for each in self.queries if each.query.id in held_out for pair in each.positives}
        others = tuple(each for each in self.queries if each.query.id not in held_out)
        return replace(self, queries=others).without_negatives(theirs, "relevant to a held-out query")

    def without_negatives(self, documents: Collection[str], reason: LeftOut) -> TrainingRows:
        """Return the rows without some documents as negatives, which are counted under a reason."""
        left_out = Counter(self.left_out)
        kept = []
        for each in self.queries:
            negatives = tuple(pair for pair in each.negatives if pair.document not in documents)
            left_out[reason] += len(each.negatives) - len(negatives)
            kept.append(replace(each, negatives=negatives))
        return replace(self, queries=tuple(kept), left_out=dict(left_out))


def training_rows(
    dataset: Dataset, overlays: Sequence[Overlay], groups: QueryGroups, synonyms: Synonyms | None, most: int
) -> TrainingRows:
    """Return the rows by the labels of a dataset and of overlays. A query has at most `most` negatives."""
    left_out: Counter[LeftOut] = Counter()
    labels = _labels(dataset, overlays, left_out)
    related = _Related.of(groups, synonyms)
    reasoning = {query: fields.get(REASONING, "") for query, fields in query_metadata(dataset).items()}
    rows = []
    for query in dataset.queries:
        mine = [pair for pair in labels.get(query.id, {}).values() if _known(pair, related, left_out)]
        positives = sorted((pair for pair in mine if pair.role == "positive"), key=lambda pair: -pair.grade)
        if not positives or not query.text.strip():
            continue
        negatives: list[TrainingPair] = []
        for pair in (pair for pair in mine if pair.role == "negative"):
            if reason := related.reason(query, pair.document):
                left_out[reason] += 1
            else:
                negatives.append(pair)
        rows.append(TrainingQuery(query, tuple(positives), tuple(negatives[:most]), reasoning.get(query.id, "")))
    return TrainingRows(dataset, tuple(rows), dict(left_out))


def _known(pair: TrainingPair, related: _Related, left_out: Counter[LeftOut]) -> bool:
    if pair.document in related.rows:
        return True
    left_out["not in the corpus"] += 1
    return False


# Labels, and who gave them.

Labels = dict[str, dict[str, TrainingPair]]
"""Query -> document -> its label."""


def _labels(dataset: Dataset, overlays: Sequence[Overlay], left_out: Counter[LeftOut]) -> Labels:
    """Return the labels of the dataset, of the judged candidates of its build, and of overlays; later ones count."""
    labels: Labels = {query: {} for query in dataset.qrels}
    for query, judged in dataset.qrels.items():
        for document, grade in judged.items():
            role: Role = "positive" if grade > 0 else "negative"
            labels[query][document] = TrainingPair(query, document, role, grade, (dataset.name,))
    for each in judged_candidates(dataset):
        known = labels.setdefault(each.query, {})
        if each.label == "negative" and each.document not in known:
            known[each.document] = TrainingPair(
                each.query, each.document, "negative", 0, (f"{each.by} of the build",), each.scores
            )
        left_out["doubtful"] += each.label == "discarded" and each.document not in known
    given = [label for overlay in overlays for label in overlay.of(dataset.name)]
    for (query, document), said in _by_pair(given).items():
        own = labels.setdefault(query, {}).pop(document, None)
        if (pair := _decided(own, said, left_out)) is not None:
            labels[query][document] = pair
    return labels


def _by_pair(labels: Sequence[OverlayLabel]) -> dict[tuple[str, str], list[OverlayLabel]]:
    """Return the labels of each pair: the last one of each person, and of each judge in each of its repeats."""
    said: dict[tuple[str, str], dict[tuple[str, str, int], OverlayLabel]] = {}
    for label in labels:
        pair, by = (label.query, label.document), (label.reviewer, label.judge, label.repeat)
        said.setdefault(pair, {})[by] = label
    return {pair: list(by.values()) for pair, by in said.items()}


def _decided(
    own: TrainingPair | None, labels: Sequence[OverlayLabel], left_out: Counter[LeftOut]
) -> TrainingPair | None:
    """Return the pair by the label of the dataset and those of overlays; None if it is no row.

    People decide what is a positive, if they labelled it, and judges otherwise. A negative is what nobody calls
    relevant: neither the dataset nor a person nor a judge.
    """
    people = [label for label in labels if label.reviewer]
    judges = [label for label in labels if not label.reviewer]
    deciding = people or judges
    role: Role = "positive" if all(label.grade > 0 for label in deciding) else "negative"
    called_relevant = any(label.grade > 0 for label in (*people, *judges)) or (own is not None and own.grade > 0)
    if role == "negative" and (called_relevant or _in_the_middle(judges)):
        left_out["doubtful"] += 1
        return None
    shown = deciding if role == "positive" else [*people, *judges]
    by = [*(own.by if own is not None and own.role == role else ()), *(label.judge for label in shown if label.judge)]
    if reviewers := {label.reviewer for label in shown if label.reviewer}:
        by.append(f"{len(reviewers)} of the reviewers")
    said = ", ".join(label.said for label in shown if label.said)
    first = labels[0]
    grade = min(label.grade for label in deciding)
    return TrainingPair(first.query, first.document, role, grade, tuple(dict.fromkeys(by)), said)


def _in_the_middle(judges: Sequence[OverlayLabel]) -> bool:
    """Return True if the mean of what judges said on a scale from 0 to 3 is not clearly irrelevant."""
    said = [label.said for label in judges]
    return bool(said) and all(word.isdigit() for word in said) and fmean(map(int, said)) >= MIDDLE_GRADE


# What is never a negative.


@dataclass(frozen=True)
class _Related:
    """What is close to relevant documents, so that it is not a negative whatever a judge says."""

    rows: Mapping[str, int]
    """Judged document -> its row in the corpus."""
    copies: Mapping[str, frozenset[str]]
    """Relevant document -> its copies."""
    pages: Mapping[str, frozenset[str]]
    relevant: Mapping[str, Sequence[str]]
    of_group: Mapping[int, frozenset[str]]
    """Group of queries -> all their relevant documents."""
    groups: Mapping[str, int]
    names: Mapping[str, tuple[str, ...]]
    """Query -> its answer and the synonyms of it."""
    dataset: Dataset

    @classmethod
    def of(cls, groups: QueryGroups, synonyms: Synonyms | None) -> _Related:
        dataset = groups.dataset
        judged = {document for documents in dataset.qrels.values() for document in documents}
        judged |= {each.document for each in judged_candidates(dataset)}
        names = sorted(judged)
        rows = {name: row for name, row in zip(names, dataset.corpus.rows(names).tolist(), strict=True) if row >= 0}
        relevant = relevant_documents(dataset)
        of_group: dict[int, set[str]] = {}
        for query, documents in relevant.items():
            of_group.setdefault(groups.of_query.get(query, 0), set()).update(documents)
        return cls(
            rows,
            _copies(dataset, {rows[each] for documents in relevant.values() for each in documents if each in rows}),
            pages_of(dataset),
            relevant,
            {group: frozenset(documents) for group, documents in of_group.items()},
            groups.of_query,
            {query.id: _answer_names(query, synonyms) for query in dataset.queries if is_open_answer(query.answer)},
            dataset,
        )

    def reason(self, query: Query, document: str) -> LeftOut | None:
        """Return why a document is not a negative of a query; None if it may be one."""
        relevant = self.relevant.get(query.id, ())
        if any(document in self.copies.get(each, ()) for each in relevant):
            return "copy of a relevant document"
        pages = {page for each in relevant for page in self.pages.get(each, ())}
        if not pages.isdisjoint(self.pages.get(document, ())):
            return "page of a relevant document"
        if document in self.of_group.get(self.groups.get(query.id, 0), ()):
            return "relevant to a query of its group"
        text = self.dataset.corpus.text(self.rows[document])
        return "names the answer" if named_in(text, self.names.get(query.id, ())) else None


def _answer_names(query: Query, synonyms: Synonyms | None) -> tuple[str, ...]:
    terms = (term for each in diagnoses_of(query, synonyms) for term in synonyms.terms(each)) if synonyms else ()
    return tuple(dict.fromkeys((query.answer, *terms)))


def _copies(dataset: Dataset, relevant: Collection[int]) -> Mapping[str, frozenset[str]]:
    found = find_copies(dataset.corpus, relevant, kinds=RELATED_COPIES)
    pairs = [(row, copy.row) for row in relevant for copy in found.of(row)]
    wanted = sorted({row for pair in pairs for row in pair})
    ids = dict(zip(wanted, dataset.corpus.ids(wanted), strict=True))
    copies: dict[str, set[str]] = {}
    for row, copy in pairs:
        copies.setdefault(ids[row], set()).add(ids[copy])
    return {document: frozenset(each) for document, each in copies.items()}
