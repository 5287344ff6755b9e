"""Read the texts of a dataset that is to be removed: from the store and from its folder, without leaving a copy."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from r2med.data import Corpus
from r2med.data.loading import load_dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import folder_in
from r2med.foundation.store.holdings import holdings, rows_about
from r2med.foundation.store.memo import memo_rows
from r2med.models.llm.journal import journal_file


def dataset_texts(store: Store, labels: Collection[str], folders: Iterable[Path] = ()) -> Iterator[str]:
    """Yield the documents, queries and answers of some datasets, and what LLMs wrote about them.

    Queries and reference answers are only in the folder of a dataset, which a label or `folders` names.
    """
    for holding in holdings(store):
        if holding.kind == "corpus" and {*labels} & {*holding.datasets}:
            for path in holding.paths:
                with contextlib.suppress(OSError, ValueError, pa.ArrowException):  # a damaged file
                    yield from _documents(Corpus.open(path, path.name))
    yield from _written(store, labels)
    for folder in {*folders, *filter(None, map(folder_in, labels))}:
        if folder.is_dir():
            yield from _in_folder(folder, store)


def _documents(corpus: Corpus) -> Iterator[str]:
    for part in filter(None, (corpus, corpus.repeats)):
        yield from (text for _, text in part)


def _written(store: Store, labels: Collection[str]) -> Iterator[str]:
    """Yield the answers of LLMs about some datasets."""
    path = journal_file(store)
    if keys := rows_about(store, sorted(labels)).get(path):
        with memo_rows(path) as rows:
            for content in rows.get(keys).values():
                yield str((json.loads(content).get("answer") or {}).get("content", ""))


def _in_folder(folder: Path, store: Store) -> Iterator[str]:
    """Yield the texts of the dataset in a folder. It is loaded into a store of its own, which is removed again."""
    with store.scratch() as scratch, contextlib.suppress(UserError):  # it is no dataset, or no longer one
        dataset = load_dataset(folder, Store(scratch))
        yield from _documents(dataset.corpus)
        for query in dataset.queries:
            yield from (query.text, query.answer, *query.options)
