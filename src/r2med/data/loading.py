"""Load datasets: the bundled demo, folders of any layout, and datasets of the hub."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from r2med.data.aspects_file import aspect_rows, gather_aspects
from r2med.data.corpus import Corpus
from r2med.data.corpus_writer import write_corpus
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.data.dataset_cards import DatasetCard
from r2med.data.layouts import Layout
from r2med.data.locating import Location, locate, place_folder, place_name
from r2med.data.overlays import Overlay, add_labels, overlay_files
from r2med.data.problems import Problems
from r2med.data.qrels_file import gather, read_judgements
from r2med.data.query_file import gather_queries
from r2med.data.source_rows import DocumentRow
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, default_store, digest
from r2med.foundation.store.dataset_labels import dataset_label
from r2med.foundation.store.files import file_state
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted

log = logging.getLogger("r2med")

LARGE_CORPUS = 1_000_000
"""Number of documents from which the ids of a corpus may not be cached. Each look-up then waits for the disk."""


@dataclass(frozen=True)
class FolderReading:
    """The result of reading a folder: the dataset, its layout, and the number of corpus rows before merging."""

    dataset: Dataset
    layout: Layout
    document_rows: int


def load_dataset(name_or_path: str | Path, store: Store | None = None) -> Dataset:
    """Load a dataset by a word whose meaning is decided: a known name is the known set, never a folder.

    What a person typed is loaded by `load` (`data/given_data.py`).
    """
    if isinstance(name_or_path, str):
        name_or_path, files = overlay_files(name_or_path)
        if files:
            return _labelled(load_dataset(name_or_path, store), [Overlay.read(file) for file in files])
    store = store or default_store()
    return _reported(_loaded(locate(name_or_path, store), str(name_or_path), store))


def load_new(folder: Path, name: str, own_folder: Path | None, store: Store) -> Dataset:
    """Load a folder that will be moved or removed. In the store it has the name and the folder of the dataset."""
    location = replace(locate(folder, store), name=name, own_folder=own_folder)
    return _reported(_loaded(location, str(folder), store))


def name_of(word: str | Path, store: Store | None = None) -> str:
    """Return the name of a dataset in records. Only files of overlays are read for it.

    Raises UserError if one of them is missing.
    """
    plain, files = overlay_files(word) if isinstance(word, str) else (word, ())
    if files:
        name = name_of(plain, store)
        return "+".join([name, *(each.name for each in map(Overlay.read, files) if name in each.datasets)])
    return place_name(word)


def label_of(word: str, store: Store) -> str:
    """Return the label of a dataset in the store."""
    return dataset_label(name_of(word, store), place_folder(word))


def _loaded(location: Location, word: str, store: Store) -> Dataset:
    problems = Problems()
    own = store.about(location.label, alone=True)
    dataset = replace(read(location, problems, own).dataset, own_folder=location.own_folder)
    problems.raise_first(word)
    return dataset


def _reported(dataset: Dataset) -> Dataset:
    for notice in dataset.notices:
        log.info("%s", notice)
    return dataset


def _labelled(dataset: Dataset, overlays: Sequence[Overlay]) -> Dataset:
    """Return the dataset with overlays. One without labels for it is reported, since scores do not show it."""
    for overlay in overlays:
        if dataset.name not in overlay.datasets:
            labelled = ", ".join(overlay.datasets)
            log.info("overlay %s labels %s and changes nothing in %s", overlay.name, labelled, dataset.name)
    return add_labels(dataset, overlays)


def read(location: Location, problems: Problems, store: Store) -> FolderReading:
    """Read as much of a dataset as possible. Faults are reported to `problems`."""
    name, folder, card, layout = location.name, location.folder, location.card, location.layout
    problems.notices += location.notices
    qrels = _qrels(layout, card, problems)
    queries = gather_queries(layout, qrels, problems)
    corpus, document_rows = _corpus(layout, card.characters if card else 0, problems, store)
    aspects = gather_aspects(aspect_rows(layout, problems), problems)
    flaws = [f"{name}: {len(problems.flaws)} flaws (r2med data check {quoted(folder)})"] if problems.flaws else []
    flaws += _unknown(name, queries, corpus, qrels, store)
    notices = (*problems.notices, *flaws)
    dataset = Dataset(*(name, queries, corpus, qrels, card, folder, location.source), notices=notices, aspects=aspects)
    return FolderReading(dataset, layout, document_rows)


def _qrels(layout: Layout, card: DatasetCard | None, problems: Problems) -> Qrels:
    """Return the judgements of the dataset, or those of the file that its card names instead."""
    if not (card and card.qrels):
        return gather(layout.judgements(problems), layout.qrels_file, problems)
    path = Path(card.qrels)
    if not path.is_file():
        raise UserError(f"the card of {card.name} names the qrels file {path}, which does not exist")
    problems.notice(f"the judgements are those of {path}, which the card of {card.name} names")
    return gather(read_judgements(path, problems), path, problems)


def _unknown(name: str, queries: tuple[Query, ...], corpus: Corpus, qrels: Qrels, store: Store) -> list[str]:
    """Return a notice if the qrels name missing queries or documents. These count as not found and lower scores."""
    lost = len(set(qrels) - {query.id for query in queries})
    judged = sorted({document for grades in qrels.values() for document, grade in grades.items() if grade > 0})
    missing = _missing(judged, corpus, store) if judged else 0
    parts = [counted(lost, "query", "queries")] * bool(lost) + [counted(missing, "relevant document")] * bool(missing)
    words = " and ".join(parts)
    return [f"{name}: the qrels name {words} absent from the dataset, which count as not found"] if parts else []


def _missing(judged: list[str], corpus: Corpus, store: Store) -> int:
    """Return the number of ids that are not in the corpus. It is saved for a large corpus, where look-ups are slow."""
    if len(corpus) < LARGE_CORPUS:
        return int((corpus.rows(judged) < 0).sum())
    note = digest(["judged documents", corpus.fingerprint, judged])
    known = store.recall(note)
    if known is None:
        known = {"missing": int((corpus.rows(judged) < 0).sum())}
        store.remember(note, known)
    return int(known["missing"])


def _corpus(layout: Layout, characters: int, problems: Problems, store: Store) -> tuple[Corpus, int]:
    """Return the corpus and the number of rows of its source. The source is read only if it has changed.

    Documents are cut after this number of characters; 0 means never.
    """
    note = digest(
        ["corpus source 3", type(layout).__name__, *layout.reading, *([characters] if characters else [])]
        + [[str(path.resolve()), *file_state(path)] for path in layout.corpus_files]
    )
    known = store.recall(note)
    artefact = store.get("corpus", known["fingerprint"]) if known else None
    if known is None or artefact is None:
        new = Problems()
        with store.scratch() as scratch:
            written = write_corpus(_cut(layout, characters, new), scratch, new)
            artefact = store.add("corpus", written.fingerprint, scratch, {})
        known = {
            "fingerprint": written.fingerprint,
            "rows": written.rows,
            "notices": new.notices,
            "flaws": [(layout.corpus_files.index(f.path), f.line, f.message, f.cause) for f in new.flaws],
        }
        if not new.problems and not new.dropped:  # otherwise read and report it again next time
            store.remember(note, known)
        problems.take(new)
    else:
        for file, line, message, cause in known["flaws"]:  # an empty text is the only flaw of documents
            problems.flaw(layout.corpus_files[file], line, message, cause, check="empty-documents")
        problems.notices += known["notices"]
    return Corpus.open(artefact.path, known["fingerprint"]), known["rows"]


def _cut(layout: Layout, characters: int, problems: Problems) -> Iterator[DocumentRow]:
    """Yield the documents, without what is longer than the card of the dataset allows. The cuts are counted."""
    count = 0
    for document in layout.documents(problems):
        if 0 < characters < len(document.text):
            count += 1
            document = replace(document, text=document.text[:characters])
        yield document
    if count:
        problems.notice(f"{counted(count, 'document')} cut after {characters:,} characters, as the card says")
