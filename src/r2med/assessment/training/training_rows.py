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
from r2med.assessment.training.query_groups import QueryGroups, diagnosis_of, relevant_documents
from r2med.data.dataset import Dataset, Query
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.data.text_copies import CopyKind, find_copies
from r2med.foundation.text.named import named_in
from r2med.foundation.text.synonyms import Synonyms

REASONING = "reasoning"
"""The field of a query file that holds the path of reasoning from the question to its answer."""
MIDDLE_GRADE = 1.0
"""Mean grade of judges from which an irrelevant passage is doubtful: "same field" on a scale from 0 to 3."""
RELATED_COPIES: tuple[CopyKind, ...] = ("equal", "near", "contained", "half")
"""Copies of relevant documents in a wide sense. None of them is a negative."""

Role = Literal["positive", "negative"]
LeftOut = Literal[
    "doubtful", "judge failed its controls", "copy of a relevant document", "page of a relevant document",
    "relevant to a query of its group", "names the answer", "relevant to a held-out query", "not in the corpus",
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
        left_out = Counter(self.left_out)
        kept = []
        for each in self.queries:
            if each.query.id not in held_out:
                negatives = tuple(pair for pair in each.negatives if pair.document not in theirs)
                left_out["relevant to a held-out query"] += len(each.negatives) - len(negatives)
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
    for overlay in overlays:
        for (query, document), given in _by_pair(overlay.of(dataset.name)).items():
            pair = _pair(given, left_out)
            labels.setdefault(query, {}).pop(document, None)
            if pair is not None:
                labels[query][document] = pair
    return labels


def _by_pair(labels: Sequence[OverlayLabel]) -> dict[tuple[str, str], list[OverlayLabel]]:
    """Return the labels of each pair: those of people if there are any, the last one of each judge or person."""
    said: dict[tuple[str, str], dict[str, OverlayLabel]] = {}
    for label in labels:
        said.setdefault((label.query, label.document), {})[label.judge or f"person {label.reviewer}"] = label
    people = {pair: [each for each in by.values() if each.reviewer] for pair, by in said.items()}
    return {pair: people[pair] or list(by.values()) for pair, by in said.items()}


def _pair(labels: Sequence[OverlayLabel], left_out: Counter[LeftOut]) -> TrainingPair | None:
    """Return the pair that labels agree on; None if they disagree, are in the middle, or are not to be trusted."""
    trusted = [label for label in labels if label.trust != "failed its controls"]
    if not trusted:
        left_out["judge failed its controls"] += 1
        return None
    said = [label.said for label in trusted if label.said]
    grades = [label.grade for label in trusted]
    doubtful = min(grades) <= 0 < max(grades)
    if max(grades) <= 0 and len(said) == len(trusted) and all(word.isdigit() for word in said):
        doubtful = fmean(map(int, said)) >= MIDDLE_GRADE
    if doubtful:
        left_out["doubtful"] += 1
        return None
    first = trusted[0]
    people = len({label.reviewer for label in trusted if label.reviewer})
    by = tuple(label.judge for label in trusted if label.judge) or (f"{people} of the reviewers",)
    role: Role = "positive" if min(grades) > 0 else "negative"
    return TrainingPair(first.query, first.document, role, min(grades), by, ", ".join(said))


# What is never a negative.


@dataclass(frozen=True)
class _Related:
    """What is close to relevant documents, so that it is not a negative whatever a judge says."""

    rows: Mapping[str, int]
    """Judged document -> its row in the corpus."""
    copies: Mapping[str, frozenset[str]]
    """Relevant document -> its copies."""
    pages: Mapping[str, str]
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
        pages = {self.pages[each] for each in relevant if each in self.pages}
        if self.pages.get(document) in pages:
            return "page of a relevant document"
        if document in self.of_group.get(self.groups.get(query.id, 0), ()):
            return "relevant to a query of its group"
        text = self.dataset.corpus.text(self.rows[document])
        return "names the answer" if named_in(text, self.names.get(query.id, ())) else None


def _answer_names(query: Query, synonyms: Synonyms | None) -> tuple[str, ...]:
    terms = synonyms.terms(diagnosis_of(query, synonyms)) if synonyms else ()
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
