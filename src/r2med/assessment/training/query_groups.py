"""Groups of queries that a split must not separate: a model that was trained with one of them has seen the others.

Queries belong together if they share a diagnosis, a source page or a relevant document, or if a text of one is a copy
of a text of the other. This is passed on: if A belongs to B and B to C, all three are one group.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from r2med.assessment.audit.answer_leaks import is_open_answer
from r2med.assessment.audit.copies import QUERY_SHINGLE_WORDS
from r2med.assessment.audit.query_metadata import query_metadata
from r2med.assessment.training.files_beside_dataset import pages_of
from r2med.data.dataset import Dataset, Query
from r2med.data.fold_file import Folds, QueryFold, query_digest
from r2med.data.text_copies import SHINGLE_WORDS, CopyKind, ListedTexts, find_copies
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.joined_groups import JoinedGroups
from r2med.foundation.store.files import digest
from r2med.foundation.text.synonyms import Synonyms, normal_term

LARGEST_SHARE = 0.5
"""Share of the queries above which one group makes a split meaningless."""
PLACE_FIELDS = ("page", "url", "source")
"""Fields of a query file that say from which page or row a query was made."""
COPY_KINDS: tuple[CopyKind, ...] = ("equal", "near", "contained")
"""Kinds of copies that put two texts into one group."""

Node = tuple[str, Hashable]
"""A reason and what queries share by it, such as ("diagnosis", "gout")."""

DIAGNOSIS, PAGE, DOCUMENT, QUESTION = "diagnosis", "source page", "relevant document", "question"


@dataclass(frozen=True)
class QueryGroups:
    """The groups of a dataset's queries, the largest first, and how many queries each reason links."""

    dataset: Dataset
    groups: tuple[tuple[str, ...], ...]
    linked: Mapping[str, int]
    """Reason -> number of queries that share this with another query."""

    @cached_property
    def of_query(self) -> Mapping[str, int]:
        """Query -> the number of its group, from 1."""
        return {query: number for number, group in enumerate(self.groups, 1) for query in group}

    def folds(self, count: int) -> Folds:
        """Return a split into `count` folds of about the same size. No group is in two folds.

        Raises UserError if one group holds more than half of the queries, or if there are fewer groups than folds.
        """
        total, largest = len(self.dataset.queries), len(self.groups[0]) if self.groups else 0
        if largest > LARGEST_SHARE * total:
            reason = max(self.linked, key=self.linked.__getitem__)
            raise UserError(
                f"{self.dataset.name} cannot be split: one group holds {largest:,} of {total:,} queries "
                f"({largest / total:.0%}), and most of them are linked by {reason}; a split through it would leak"
            )
        if len(self.groups) < count:
            raise UserError(
                f"{self.dataset.name} has {len(self.groups):,} groups of queries that share nothing, which is too few "
                f"for {count} folds: ask for fewer folds"
            )
        # The largest group goes first into the smallest fold. Groups of one size come in an order that follows from
        # the ids, so that neighbours in the file do not end up together.
        members: list[list[str]] = [[] for _ in range(count)]
        for group in sorted(self.groups, key=lambda each: (-len(each), digest(["fold", self.dataset.name, each[0]]))):
            min(members, key=len).extend(group)
        fold = {query: number for number, queries in enumerate(members, 1) for query in queries}
        return Folds.of(
            QueryFold(query=each.id, text=query_digest(each), fold=fold[each.id], group=self.of_query[each.id])
            for each in self.dataset.queries
        )


def query_groups(dataset: Dataset, synonyms: Synonyms | None = None) -> QueryGroups:
    """Return the groups of queries that a split must not separate. `synonyms` says which diagnoses are the same."""
    joined: JoinedGroups[Node] = JoinedGroups()
    shared: Counter[tuple[str, Node]] = Counter()
    nodes: dict[str, set[Node]] = defaultdict(set)
    copies = _document_copies(dataset)
    for query, node in _nodes(dataset, synonyms, copies):
        joined.join(("query", query.id), node)
        nodes[query.id].add(node)
        shared[node[0], node] += 1
    linked = Counter(
        reason for mine in nodes.values() for reason in {node[0] for node in mine if shared[node[0], node] > 1}
    )
    groups: dict[Node, list[str]] = defaultdict(list)
    for query in dataset.queries:
        groups[joined.first(("query", query.id))].append(query.id)
    ordered = sorted(map(tuple, groups.values()), key=lambda group: (-len(group), group[0]))
    reasons = (DIAGNOSIS, PAGE, DOCUMENT, QUESTION)
    return QueryGroups(dataset, tuple(ordered), {reason: linked[reason] for reason in reasons})


def diagnoses_of(query: Query, synonyms: Synonyms | None) -> tuple[str, ...]:
    """Return what a query's answer means: all its concepts in the table, or its normal form. Empty for yes and no."""
    if not is_open_answer(query.answer):
        return ()
    meant = synonyms.meanings(query.answer) if synonyms else ()
    return meant or tuple(filter(None, (normal_term(query.answer),)))


def relevant_documents(dataset: Dataset) -> Mapping[str, Sequence[str]]:
    """Return query -> its relevant documents."""
    return {query: [name for name, grade in judged.items() if grade > 0] for query, judged in dataset.qrels.items()}


def _nodes(dataset: Dataset, synonyms: Synonyms | None, copies: Mapping[str, str]) -> Iterator[tuple[Query, Node]]:
    """Yield each query with everything that it may share with others."""
    relevant, pages, places = relevant_documents(dataset), pages_of(dataset), query_metadata(dataset)
    same_question = _question_copies(dataset)
    for query in dataset.queries:
        for diagnosis in diagnoses_of(query, synonyms):
            yield query, (DIAGNOSIS, diagnosis)
        for field in PLACE_FIELDS:
            if (place := places.get(query.id, {}).get(field, "")) and (field != "source" or _is_place(place)):
                yield query, (PAGE, place)
        for document in relevant.get(query.id, ()):
            yield query, (DOCUMENT, copies.get(document, document))
            for page in pages.get(document, ()):
                yield query, (PAGE, page)
        yield query, (QUESTION, same_question.get(query.id, query.id))


def _is_place(source: str) -> bool:
    """Return True for an address, or a file and line. A word such as PubMed is the source of many queries."""
    return "://" in source or source.rpartition(":")[2].isdigit()


def _document_copies(dataset: Dataset) -> Mapping[str, str]:
    """Return relevant document -> the name of its group of copies, for documents that have copies among them."""
    names = sorted({document for documents in relevant_documents(dataset).values() for document in documents})
    rows = dataset.corpus.rows(names).tolist()
    known = [(name, row) for name, row in zip(names, rows, strict=True) if row >= 0]
    texts = dataset.corpus.texts([row for _, row in known])
    return _copy_groups([name for name, _ in known], texts)


def _question_copies(dataset: Dataset) -> Mapping[str, str]:
    asked = [query for query in dataset.queries if query.text.strip()]
    return _copy_groups([query.id for query in asked], [query.text for query in asked], QUERY_SHINGLE_WORDS)


def _copy_groups(names: Sequence[str], texts: Sequence[str], words: int = SHINGLE_WORDS) -> Mapping[str, str]:
    """Return the name of each text -> one name that all copies of this text share."""
    joined: JoinedGroups[str] = JoinedGroups()
    for copy in find_copies(ListedTexts(texts), range(len(texts)), kinds=COPY_KINDS, words=words).found:
        joined.join(names[copy.original], names[copy.row])
    return {name: joined.first(name) for name in names}
