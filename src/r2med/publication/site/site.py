"""Write the files of the board into a folder, which may contain an earlier board."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.data import Qrels
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import is_reserved
from r2med.data.dataset_word import GivenData, given_data
from r2med.data.overlays import Overlay, given_overlays
from r2med.evaluation.records.collection import MAX_FAILURES, checked, collect, given_records
from r2med.evaluation.records.local_datasets import local_datasets, typed_places
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord, with_rankings
from r2med.evaluation.records.used_labels import published_name, published_names
from r2med.publication.leaderboard.board_entries import SubmittedRecords, read_entries
from r2med.publication.leaderboard.entry_verdicts import Verdicts
from r2med.publication.site.answer_rows import answers_value
from r2med.publication.site.board_answers import is_answer_file, read_board_answers
from r2med.publication.site.board_folder import asset_files, updated_board
from r2med.publication.site.board_labels import LabelledRecords, with_board_labels
from r2med.publication.site.board_sets import dataset_names
from r2med.publication.site.explorer import explorer_files
from r2med.publication.site.leaderboard import site_value
from r2med.publication.site.system_pages import system_values

log = logging.getLogger("r2med")


Relevant = list[tuple[str, int]]
"""Relevant documents with their grades."""


def gold_value(collection: RecordCollection, dataset: str, qrels: Qrels | None) -> dict[str, Any]:
    """Return the relevant documents of each query, their grades, and their ranks in every system; 0 beyond the depth.

    If the dataset is not on this machine, `qrels` is None. Then the relevant documents are those that the records
    name, all with grade 1. Relevant documents that no system retrieved have an empty id.
    """
    records = [kept.record if (kept := collection.cell(name, dataset)) else None for name in collection.systems]
    known = [record for record in records if record is not None]
    queries = list(known[0].per_query)
    relevant = [_judged(qrels[query]) if qrels is not None else _retrieved(known, query) for query in queries]
    return {
        "queries": queries,
        "gold": [[document for document, _ in pairs] for pairs in relevant],
        "grades": [[grade for _, grade in pairs] for pairs in relevant],
        "ranks": [_ranks(record, queries, relevant) if record else None for record in records],
    }


def _judged(grades: Mapping[str, int]) -> Relevant:
    return [(document, grade) for document, grade in grades.items() if grade > 0]


def _retrieved(records: Sequence[Record], query: str) -> Relevant:
    documents = sorted({document for record in records for document in record.gold.get(query, {})})
    facts = records[0].queries.get(query)
    nowhere = max(0, (facts.positives if facts else 0) - len(documents))
    return [(document, 1) for document in [*documents, *[""] * nowhere]]


def _ranks(record: Record, queries: Sequence[str], relevant: Sequence[Relevant]) -> list[list[int]]:
    empty: Mapping[str, int] = {}
    ranked = [record.gold.get(query, empty) for query in queries]
    return [[ranks.get(document, 0) for document, _ in pairs] for ranks, pairs in zip(ranked, relevant, strict=True)]


def make_board(
    sources: str | Path | Sequence[str | Path] = (),
    out: Path | str = "board",
    data: str | Path | Dataset | Sequence[str | Path | Dataset] = (),
    entries: Path | str | None = None,
    max_failures: float = MAX_FAILURES,
    texts: bool = True,
    overlays: str | Path | Overlay | Sequence[str | Path | Overlay] = (),
    verdicts: Path | str | None = None,
) -> Path:
    """Make a board of records, as `r2med board` does, and return the page to open.

    Without sources, the board shows the records of `results`. If `entries` is given, it shows only the entries. Those
    without a verdict in the file `verdicts`, which `verify` writes, are marked and ranked last. With `texts=False`, the
    board contains no text of a document, a query or an LLM. With `overlays`, the leaderboard can also show scores with
    the labels of these files. Answer records among the sources are shown on a page of their own, and under the
    rankings. Those of entries have no texts, and are shown on the page only.
    """
    folders = given_records(sources) or ([] if entries else ["results"])
    of_records = [each for each in folders if not is_answer_file(each)]
    kept = list(collect(of_records, max_failures=max_failures)) if of_records else []
    submitted = _submitted(Path(entries), kept, max_failures, verdicts) if entries else SubmittedRecords()
    kept += submitted.records
    labels = given_overlays(overlays)
    collection = checked(kept, max_failures)
    answers = read_board_answers(folders, collection, submitted.answers)
    make_site(collection, Path(out), given_data(data), texts, labels, answers)
    return Path(out) / "index.html"


def _submitted(
    entries: Path, kept: Sequence[StoredRecord], max_failures: float, verdicts: Path | str | None
) -> SubmittedRecords:
    known = Verdicts.read(Path(verdicts), [entries]) if verdicts else None
    return read_entries(entries, kept, max_failures, known)


def make_site(
    collection: RecordCollection,
    folder: Path,
    data: Sequence[GivenData] = (),
    texts: bool = True,
    overlays: Sequence[Overlay] = (),
    answers: RecordCollection | None = None,
) -> None:
    """Make the board of records in a folder. It replaces an earlier board.

    `data` are the folders of the user's datasets. Datasets of the benchmark and of the demo are found by name. If a
    dataset is not on this machine, the board shows its scores without texts. Raises UserError if the folder contains
    files but no board.
    """
    with_rankings(collection)  # missing run files are reported, also those that no page of this board shows
    datasets = local_datasets(collection, data)
    own = [name for name, each in datasets.items() if not is_reserved(published_name(each))] if texts else []
    labelled = with_board_labels(collection, datasets, overlays)
    answered = answers or RecordCollection({})
    shown = published_names(each.record for each in (*collection.runs_of_all, *answered))
    private = texts and not all(map(is_reserved, shown.values()))
    write_site(folder, _site_files(labelled, texts, own, typed_places(data), answered), private=private)
    if own:
        log.warning(
            "the board contains texts of documents and queries of %s: show it only to people who may read them, "
            "or make it without texts (--without-texts)",
            ", ".join(own),
        )


def _site_files(
    labelled: LabelledRecords,
    texts: bool,
    own: Sequence[str],
    places: Mapping[str, str],
    answers: RecordCollection,
) -> Iterator[tuple[str, Any]]:
    collection, datasets = labelled.collection, labelled.datasets
    names = dataset_names(collection)
    yield "site", site_value(collection, own, {each.record.dataset.name for each in answers})
    if answers.cells:
        yield "answers", answers_value(answers, collection, names)
    for number, value in enumerate(system_values(collection, names, places)):
        yield f"system/{number}", value
    for number, name in enumerate(names):
        if name in collection.datasets:
            dataset = datasets.get(name)
            yield f"gold/{number}", gold_value(collection, name, dataset.qrels if dataset else None)
    yield from explorer_files(collection, names, datasets if texts else {}, labelled.said, answers)


def write_site(folder: Path, files: Iterable[tuple[str, Any]], *, private: bool = True) -> None:
    """Write the assets and the data files (name, value). They replace an earlier board in the folder.

    Other files in the folder are not changed. Raises UserError if the folder contains files but no board.
    """
    with updated_board(folder, private=private) as new:
        for name, content in _contents(files):
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def _contents(files: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, bytes]]:
    for asset in asset_files():
        yield (asset.name if asset.name == "index.html" else f"assets/{asset.name}"), asset.read_bytes()
    for name, value in files:
        yield f"data/{name}.js", data_script(name, value)


def data_script(name: str, value: Any) -> bytes:
    """Return a classic script that passes a value to the page, as JSON in a string, so that JavaScript runs none of it.

    A lone surrogate is written as an escape, and so are the two line separators that JSON allows in strings and older
    JavaScript does not.
    """
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    content = json.dumps(content, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"pages.data({json.dumps(name)}, {content});\n".encode(errors="backslashreplace")
