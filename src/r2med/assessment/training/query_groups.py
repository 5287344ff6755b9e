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
from r2med.assessment.audit.containment import KnownKind, KnownText, known_texts, linked_texts
from r2med.assessment.audit.query_metadata import query_metadata
from r2med.assessment.training.files_beside_dataset import page_name, pages_of
from r2med.data.dataset import Dataset, Query
from r2med.data.fold_file import Folds, QueryFold, query_digest
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import digest
from r2med.foundation.text.synonyms import JoinedGroups, Synonyms, term_forms

LARGEST_SHARE = 0.5
"""Share of the queries above which one group makes a split meaningless."""
PLACE_FIELDS = ("page", "url", "source")
"""Fields of a query file that say from which page or row a query was made."""
Node = tuple[str, Hashable]
"""A reason and what queries share by it, such as ("diagnosis", "gout")."""

REASONING = "reasoning"
"""The field of a query file that holds the path of reasoning from the question to its answer."""

DIAGNOSIS, PAGE, DOCUMENT, QUESTION, PATH = (
    "diagnosis", "source page", "relevant document", "question", "reasoning text",
)  # fmt: skip
REASONS = (DIAGNOSIS, PAGE, DOCUMENT, QUESTION, PATH)
TEXT_REASONS: Mapping[KnownKind, str] = {
    "question": QUESTION, "passage": DOCUMENT, "answer": DIAGNOSIS, "reasoning": PATH,
}  # fmt: skip


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
    owners: dict[Node, set[str]] = defaultdict(set)
    reasons: dict[str, set[tuple[str, Node]]] = defaultdict(set)
    for name, reason, node in _nodes(dataset, synonyms):
        joined.join(("query", name), node)
        owners[node].add(name)
        reasons[name].add((reason, node))
    linked = Counter(
        reason for mine in reasons.values() for reason in {why for why, node in mine if len(owners[node]) > 1}
    )
    groups: dict[Node, list[str]] = defaultdict(list)
    for query in dataset.queries:
        groups[joined.first(("query", query.id))].append(query.id)
    ordered = sorted(map(tuple, groups.values()), key=lambda group: (-len(group), group[0]))
    return QueryGroups(dataset, tuple(ordered), {each: linked[each] for each in REASONS})


def diagnoses_of(query: Query, synonyms: Synonyms | None) -> tuple[str, ...]:
    """Return what a query's answer means: all its concepts in the table, or its normal form. Empty for yes and no."""
    if not is_open_answer(query.answer):
        return ()
    meant = synonyms.meanings(query.answer) if synonyms else ()
    return meant or tuple(filter(None, dict.fromkeys(term_forms(query.answer))))


def relevant_documents(dataset: Dataset) -> Mapping[str, Sequence[str]]:
    """Return query -> its relevant documents."""
    return {query: [name for name, grade in judged.items() if grade > 0] for query, judged in dataset.qrels.items()}


def _nodes(dataset: Dataset, synonyms: Synonyms | None) -> Iterator[tuple[str, str, Node]]:
    """Yield each query with everything that it may share with others, and the reason that this is called."""
    relevant, pages, places = relevant_documents(dataset), pages_of(dataset), query_metadata(dataset)
    for query in dataset.queries:
        for diagnosis in diagnoses_of(query, synonyms):
            yield query.id, DIAGNOSIS, (DIAGNOSIS, diagnosis)
        for field in PLACE_FIELDS:
            if (place := places.get(query.id, {}).get(field, "")) and (field != "source" or _is_place(place)):
                yield query.id, PAGE, (PAGE, page_name(place))
        for document in relevant.get(query.id, ()):
            yield query.id, DOCUMENT, (DOCUMENT, document)
            for page in pages.get(document, ()):
                yield query.id, PAGE, (PAGE, page)
    reasoning = {query: text for query, fields in places.items() if (text := fields.get(REASONING, "").strip())}
    yield from _text_nodes(dataset, {query.id for query in dataset.queries}, reasoning)


def _text_nodes(dataset: Dataset, asked: set[str], reasoning: Mapping[str, str]) -> Iterator[tuple[str, str, Node]]:
    """Yield each query with the groups of copies of its texts: of what an audit would find in the other's rows."""
    known = known_texts(dataset)
    paths = [KnownText(dataset.name, "reasoning", query, (query,), text) for query, text in reasoning.items()]
    joined: JoinedGroups[tuple[str, str]] = JoinedGroups()
    for one, other in linked_texts(known, dataset, paths):
        joined.join((one.kind, one.id), (other.kind, other.id))
    for each in (*known, *paths):
        for query in asked.intersection(each.queries):
            yield query, TEXT_REASONS[each.kind], ("text", joined.first((each.kind, each.id)))


def _is_place(source: str) -> bool:
    """Return True for an address, or a file and line. A word such as PubMed is the source of many queries."""
    return "://" in source or source.rpartition(":")[2].isdigit()
