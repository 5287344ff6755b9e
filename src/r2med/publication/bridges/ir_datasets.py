"""Register our datasets in ir_datasets: importing this module adds r2med/biology, r2med/demo/biology and so on.

Nothing is read or downloaded until the documents, queries or judgements of a dataset are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import ir_datasets
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericDoc, GenericQrel, GenericQuery
from ir_datasets.indices import Docstore

from r2med.data.dataset_cards import groups
from r2med.data.loading import load_dataset

if TYPE_CHECKING:
    from r2med.data.dataset import Dataset


class _Source:
    """One of our datasets, which is loaded on first use."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @cached_property
    def _dataset(self) -> Dataset:
        return load_dataset(self._name)


class Docs(_Source, BaseDocs):  # type: ignore[misc]
    """The corpus of a dataset, for ir_datasets."""

    def docs_iter(self) -> Iterator[GenericDoc]:
        """Yield the documents in order."""
        return (GenericDoc(*document) for document in self._dataset.corpus)

    def docs_count(self) -> int:
        """Return the number of documents."""
        return len(self._dataset.corpus)

    def docs_store(self, *options: Any, **more: Any) -> DocsStore:
        """Return a store that looks up documents by id."""
        return DocsStore(self._dataset)

    def docs_lang(self) -> str:
        """Return the language code."""
        return "en"


class DocsStore(Docstore):  # type: ignore[misc]
    """Looks up documents in our memory-mapped corpus, without copying it."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(GenericDoc)
        self._corpus = dataset.corpus

    def get_many_iter(self, doc_ids: Sequence[str]) -> Iterator[GenericDoc]:
        """Yield the documents with these ids. Unknown ids are skipped."""
        wanted = list(doc_ids)
        rows = self._corpus.rows(wanted)
        known = [identifier for identifier, row in zip(wanted, rows, strict=True) if row >= 0]
        return map(GenericDoc, known, self._corpus.texts(rows[rows >= 0]))


class Queries(_Source, BaseQueries):  # type: ignore[misc]
    """The queries of a dataset, for ir_datasets."""

    def queries_iter(self) -> Iterator[GenericQuery]:
        """Yield the queries in order."""
        return (GenericQuery(query.id, query.text) for query in self._dataset.queries)

    def queries_lang(self) -> str:
        """Return the language code."""
        return "en"


class DatasetQrels(_Source, BaseQrels):  # type: ignore[misc]
    """The relevance judgements of a dataset, for ir_datasets."""

    def qrels_iter(self) -> Iterator[GenericQrel]:
        """Yield the relevance judgements."""
        for query, grades in self._dataset.qrels.items():
            for document, grade in grades.items():
                yield GenericQrel(query, document, grade)

    def qrels_defs(self) -> dict[int, str]:
        """Return the meaning of each grade."""
        return {1: "relevant"}


def identifiers() -> dict[str, str]:
    """Return the name of each of our datasets, with its id in ir_datasets."""
    return {name: f"r2med/{name.lower()}" for group in ("R2MED", "demo") for name in groups()[group]}


for _name, _id in identifiers().items():
    if _id not in ir_datasets.registry:
        ir_datasets.registry.register(_id, ir_datasets.Dataset(Docs(_name), Queries(_name), DatasetQrels(_name)))
