"""Read datasets of ir_datasets, `irds:ID`. They are streamed once into a BEIR folder of the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from r2med.foundation.core.errors import UserError, check_installed, nearest
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import json_line, write_atomically

PREFIX = "irds:"


def irds_folder(identifier: str, store: Store) -> Path:
    """Return the folder of a dataset, and write it first if necessary. ir_datasets downloads missing files.

    Raises UserError if the dataset does not exist, cannot be downloaded, or has no documents, queries or judgements.
    """
    check_installed(f"{PREFIX}{identifier}", ["ir_datasets"])
    import ir_datasets
    from requests import RequestException  # the client of ir_datasets

    try:
        source: Any = ir_datasets.load(identifier)
    except KeyError:
        hint = nearest(identifier, list(ir_datasets.registry))
        raise UserError(f"ir_datasets has no dataset {identifier!r}{hint}") from None
    for part in ("docs", "queries", "qrels"):
        if not source.has(part):
            raise UserError(f"{PREFIX}{identifier} has no {part}: name a subset that has, as in irds:beir/scifact/test")

    def build(folder: Path) -> dict[str, Any]:
        for name, lines in _files(source).items():
            (folder / name).parent.mkdir(exist_ok=True)
            write_atomically(folder / name, lines)
        return {"dataset": identifier}

    try:
        key = digest(["irds 1", identifier, ir_datasets.__version__])
        return store.about(identifier).make("irds", key, build).path
    except RequestException as error:
        raise UserError(
            f"ir_datasets cannot download {identifier} ({type(error).__name__}): try again online"
        ) from None


def _files(source: Any) -> dict[str, Iterator[bytes]]:
    documents = ({"_id": doc.doc_id, "text": doc.default_text()} for doc in source.docs_iter())
    queries = ({"_id": query.query_id, "text": query.default_text()} for query in source.queries_iter())
    judged = ({"q_id": each.query_id, "p_id": each.doc_id, "score": each.relevance} for each in source.qrels_iter())
    return {
        "corpus.jsonl": map(json_line, documents),
        "queries.jsonl": map(json_line, queries),
        "qrels/test.tsv": map(json_line, judged),  # a reader recognises the format by the content
    }
