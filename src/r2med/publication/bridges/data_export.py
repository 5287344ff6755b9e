"""Export datasets in other layouts: BEIR, MTEB, TREC, the hub, and the hub with Croissant metadata."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from r2med.data.aspects_file import ASPECTS_NAME
from r2med.data.dataset import Dataset, Query
from r2med.data.nuggets_file import NUGGETS_NAME, nuggets_of
from r2med.data.publishing.croissant import CONFIGS, PublishedFacts, croissant
from r2med.data.publishing.hub_card import hub_head
from r2med.data.runs.trec import encode_id
from r2med.data.tables.importing import require_new
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.store.files import replaced, sha256, write_json
from r2med.foundation.text.search_languages import ENGLISH

COLUMNS = {name: tuple(columns) for name, (_, columns) in CONFIGS.items()}
"""File of a dataset -> the columns that all its rows have."""


def write_layout(dataset: Dataset, layout: str, folder: Path) -> None:
    """Write a dataset into a new folder, whole or not at all: beir, mteb, trec, hub or croissant.

    Raises UserError if the folder exists already, or if the format cannot hold an id.
    """
    if layout not in FORMS:
        raise unknown("format", layout, FORMS)
    require_new(folder)
    with replaced(folder, "corpus.jsonl", "a dataset") as new:
        FORMS[layout](dataset, new)
        if dataset.aspects:
            _write_rows(new / ASPECTS_NAME, _aspect_rows(dataset))
        if nuggets := nuggets_of(dataset):
            nuggets.write(new / NUGGETS_NAME)


def _aspect_rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for query, aspects in dataset.aspects.items():
        for name, aspect in aspects.items():
            yield {"query": query, "aspect": name, "weight": aspect.weight, "documents": list(aspect.documents)}


def _beir(dataset: Dataset, folder: Path) -> None:
    corpus = ({"_id": identifier, "title": "", "text": text} for identifier, text in dataset.corpus)
    _write_rows(folder / "corpus.jsonl", corpus)
    _write_rows(folder / "queries.jsonl", ({"_id": query.id, "text": query.text} for query in dataset.queries))
    head = "query-id\tcorpus-id\tscore"
    tab = r"[\t\r\n]"
    rows = (f"{_unbroken(query, tab)}\t{_unbroken(d, tab)}\t{grade}" for query, d, grade in _judged(dataset))
    _write_lines(folder / "qrels" / "test.tsv", chain((head,), rows))


def _mteb(dataset: Dataset, folder: Path) -> None:
    """Write BEIR's files with a README for the hub. The qrels are also written as JSON rows, so that ids stay texts."""
    _beir(dataset, folder)
    rows = ({"query-id": query, "corpus-id": document, "score": grade} for query, document, grade in _judged(dataset))
    _write_rows(folder / "qrels" / "test.jsonl", rows)
    files = {"default": "qrels/test.jsonl", "corpus": "corpus.jsonl", "queries": "queries.jsonl"}
    _write_readme(dataset, folder, files, "test")


def _trec(dataset: Dataset, folder: Path) -> None:
    """Write topics and qrels in columns. Corpus and queries are JSON rows, since columns cannot hold long texts.

    Ids in columns are written as in our run files: an id with white space is percent-encoded. The qrels are also
    written as JSON rows with the ids as they are.
    """
    _write_own(dataset, folder, COLUMNS)
    topics = (f"{encode_id(query.id)}\t{' '.join(query.text.split())}" for query in dataset.queries)
    _write_lines(folder / "topics.tsv", topics)
    lines = (f"{encode_id(query)} 0 {encode_id(document)} {grade}" for query, document, grade in _judged(dataset))
    _write_lines(folder / "qrels.txt", lines)


def _hub(dataset: Dataset, folder: Path) -> None:
    _write_own(dataset, folder, COLUMNS)
    _write_readme(dataset, folder, {name: f"{name}.jsonl" for name in COLUMNS})


def _croissant(dataset: Dataset, folder: Path) -> None:
    _hub(dataset, folder)
    sizes = {path.name: (path.stat().st_size, sha256(path)) for path in sorted(folder.iterdir())}
    repository = dataset.source.partition("@")[0]
    facts = PublishedFacts(
        name=dataset.name.replace("/", "-"),
        description=_description(dataset),
        url=f"https://huggingface.co/datasets/{repository}" if repository else "",
        licence=_licence(dataset),
        languages=_languages(dataset),
    )
    described = croissant(facts, sizes, CONFIGS)
    write_json(folder / "croissant.json", described)


FORMS: Mapping[str, Callable[[Dataset, Path], None]] = {
    "beir": _beir,
    "mteb": _mteb,
    "trec": _trec,
    "hub": _hub,
    "croissant": _croissant,
}


def _judged(dataset: Dataset) -> Iterator[tuple[str, str, int]]:
    for query, grades in dataset.qrels.items():
        for document, grade in grades.items():
            yield query, document, grade


def _write_own(dataset: Dataset, folder: Path, names: Iterable[str]) -> None:
    """Write files in the benchmark's own layout."""
    rows: dict[str, Iterable[Mapping[str, Any]]] = {
        "query": map(_query_row, dataset.queries),
        "corpus": ({"id": identifier, "text": text} for identifier, text in dataset.corpus),
        "qrels": ({"q_id": query, "p_id": document, "score": grade} for query, document, grade in _judged(dataset)),
    }
    for name in names:
        _write_rows(folder / f"{name}.jsonl", rows[name])


def _query_row(query: Query) -> dict[str, Any]:
    row = {**{name: getattr(query, name) for name in COLUMNS["query"]}, "excluded_ids": list(query.excluded)}
    return {**row, "options": list(query.options)} if query.options else row


def _write_readme(dataset: Dataset, folder: Path, files: Mapping[str, str], split: str = "") -> None:
    head = hub_head(dataset.name, _licence(dataset), len(dataset.corpus), files, split, _languages(dataset))
    (folder / "README.md").write_text(f"{head}# {dataset.name}\n\n{_description(dataset)}\n", "utf-8")


def _description(dataset: Dataset) -> str:
    sizes = f"{len(dataset.queries):,} queries, {len(dataset.corpus):,} documents"
    origin = f", from {dataset.source}" if dataset.source else ""
    return f"{dataset.name}: {sizes}, {dataset.qrels.positives:,} relevant pairs{origin}. Written by r2med."


def _licence(dataset: Dataset) -> str:
    return dataset.card.licence if dataset.card else ""


def _languages(dataset: Dataset) -> tuple[str, ...]:
    """Return the languages of the card. A card without languages is that of an English dataset."""
    return (dataset.card.languages if dataset.card else ()) or (ENGLISH,)


def _unbroken(identifier: str, breaks: str) -> str:
    if re.search(breaks, identifier):
        raise UserError(f"the id {identifier!r} would break a column of this format: export the dataset as hub")
    return identifier


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    _write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
