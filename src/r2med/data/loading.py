"""Load datasets with `load(name_or_path)`: the bundled demo, folders of any layout, and datasets of the hub."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass, replace
from pathlib import Path

from r2med.core.errors import UserError, refuse_table, unknown
from r2med.data.benchmark_names import (
    has_benchmark_counts,
    is_reserved,
    known_fingerprint,
    own_name,
    remember_fingerprint,
    source_of,
)
from r2med.data.corpus import Corpus
from r2med.data.corpus_writer import write_corpus
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.data.dataset_cards import OWN_PREFIX, DatasetCard, benchmark_cards, cards, demo_folder, groups, read_card
from r2med.data.irds import PREFIX, irds_folder
from r2med.data.layouts import Layout, detect, is_dataset
from r2med.data.problems import Problems
from r2med.data.qrels_file import gather
from r2med.data.source_rows import QueryRow, where
from r2med.store import Store, about, default_store, digest

log = logging.getLogger("r2med")

LARGE_CORPUS = 1_000_000
"""Number of documents from which the ids of a corpus may not be cached. Each look-up then waits for the disk."""


@dataclass(frozen=True)
class FolderReading:
    """The result of reading a folder: the dataset, its layout, and the number of corpus rows before merging."""

    dataset: Dataset
    layout: Layout
    document_rows: int


def load(name_or_path: str | Path, store: Store | None = None) -> Dataset:
    """Load one dataset by a name of the benchmark, `demo/NAME`, `irds:ID` of ir_datasets, or the path of a folder."""
    refuse_table(
        name_or_path, "a dataset", "a name or a folder; for tables in memory: r2med.Dataset.of(queries, corpus, qrels)"
    )
    name, folder, card = locate(name_or_path, store or default_store())
    problems = Problems()
    with about(dataset=name, alone=True):
        dataset = read(name, folder, card, problems, store or default_store()).dataset
    problems.raise_first(str(name_or_path))
    if card is not None and card.hub is not None and not card.folder and name_or_path in cards():
        dataset = replace(dataset, source=f"{card.hub.repository}@{card.hub.revision}")
    dataset = _honestly_named(dataset, store or default_store())
    for notice in dataset.notices:
        log.info("%s", notice)
    return dataset


def _honestly_named(dataset: Dataset, store: Store) -> Dataset:
    """Return the dataset with its honest name. A reserved name needs the fingerprint of the benchmark's data."""
    name = dataset.name
    if dataset.source and dataset.source == source_of(name):
        remember_fingerprint(name, dataset.fingerprint, store)
    elif known_fingerprint(name, store) not in ("", dataset.fingerprint):
        name = own_name(name)
    if name.startswith(OWN_PREFIX):
        word = name.removeprefix(OWN_PREFIX)
        notice = f"{dataset.folder} is not the dataset {word} of the benchmark: its name is {name}"
        if word in benchmark_cards() and not known_fingerprint(word, store):
            notice = (
                f"{dataset.folder} has the name {name}: to compare it with the benchmark's {word}, load that one first "
                f"(r2med data check {word})"
            )
        dataset = replace(dataset, name=name, notices=(*dataset.notices, notice))
    return dataset


def names(name_or_path: str | Path) -> list[str]:
    """Return the datasets that a word names: the members of a group, the datasets in a folder, or the word itself."""
    word = str(name_or_path)
    if members := groups().get(word):
        return list(members)
    folder = _path(word)
    if word not in cards() and folder.is_dir() and not is_dataset(folder):
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and is_dataset(path))
        rank = {name: number for number, name in enumerate(cards())}
        return [str(path) for path in sorted(inside, key=lambda p: rank.get(p.name, len(rank)))] or [word]
    return [word]


def locate(name_or_path: str | Path, store: Store) -> tuple[str, Path, DatasetCard | None]:
    """Return (name, folder, card) of a dataset, and fetch it from the hub if necessary."""
    word = str(name_or_path)
    if isinstance(name_or_path, str):
        if word.startswith(PREFIX):
            return word.removeprefix(PREFIX), irds_folder(word.removeprefix(PREFIX), store), None
        if word in cards():
            from r2med.data.hub import snapshot

            card = cards()[word]
            if card.folder:
                return _name_here(word, _local_folder(card), store), _local_folder(card), card
            if card.hub is None:
                raise UserError(
                    f"the card of {word} names neither a folder nor a hub repository: add one, or give a path"
                )
            return word, snapshot(card.hub, store), card
        if word in groups()["demo"]:
            folder = demo_folder(word.removeprefix("demo/"))
            return word, folder, _card_of(folder, word)
        if word in groups():
            members = groups()[word]
            raise UserError(f"{word} is a group of {len(members)} datasets: name one of them, such as {members[0]}")
    folder = _path(word)
    if folder.is_dir():
        return name_of(folder, store), folder, _card_of(folder)
    if folder.exists():
        raise UserError(f"{word} is a file: a dataset is a folder")
    known = [*cards(), *groups(), *groups()["demo"]]
    raise unknown("dataset or folder", word, known, "r2med data list shows all")


def read(name: str, folder: Path, card: DatasetCard | None, problems: Problems, store: Store) -> FolderReading:
    """Read as much of a folder as possible. Faults are reported to `problems`."""
    layout = detect(folder)
    qrels = gather(layout.judgements(problems), layout.qrels_file, problems)
    queries = _queries(layout, qrels, problems)
    corpus, document_rows = _corpus(layout, problems, store)
    flaws = [f"{name}: {len(problems.flaws)} flaws (r2med data check {folder})"] if problems.flaws else []
    flaws += _unknown(name, queries, corpus, qrels, store)
    dataset = Dataset(name, queries, corpus, qrels, card, folder, notices=(*problems.notices, *flaws))
    return FolderReading(dataset, layout, document_rows)


def _unknown(name: str, queries: tuple[Query, ...], corpus: Corpus, qrels: Qrels, store: Store) -> list[str]:
    """Return a notice if the qrels name missing queries or documents. These count as not found and lower scores."""
    lost = len(set(qrels) - {query.id for query in queries})
    judged = sorted({document for grades in qrels.values() for document, grade in grades.items() if grade > 0})
    missing = _missing(judged, corpus, store) if judged else 0
    parts = [f"{lost} queries"] * bool(lost) + [f"{missing} relevant documents"] * bool(missing)
    return [f"{name}: the qrels name {' and '.join(parts)} that do not exist; they score 0"] if parts else []


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


def _queries(layout: Layout, qrels: Qrels, problems: Problems) -> tuple[Query, ...]:
    rows: dict[str, QueryRow] = {}
    repeated = 0
    other_texts: list[str] = []
    for row in layout.queries(problems):
        earlier = rows.get(row.id, row)
        rows[row.id] = row
        if earlier is not row:
            repeated += 1
            if earlier.text != row.text:
                line = where(earlier.path, earlier.line, seen_from=row.path)
                other_texts.append(f"{row.id!r}: {line} and {row.path.name}:{row.line}")
    if repeated:
        also = (
            f"; {len(other_texts):,} ids came with another text, and the last one counts (such as {other_texts[0]})"
            if other_texts
            else ""
        )
        problems.notice(f"{layout.query_file}: {repeated:,} repeated rows merged{also}")
    judged = [row for row in rows.values() if row.id in qrels or not layout.judged_queries_only]
    if len(judged) < len(rows):
        problems.notice(f"{layout.query_file}: {len(rows) - len(judged)} queries of other splits left out")
    return tuple(_query(row, qrels) for row in judged)


def _query(row: QueryRow, qrels: Qrels) -> Query:
    relevant = {document for document, grade in qrels.get(row.id, {}).items() if grade > 0}
    excluded = tuple(document for document in dict.fromkeys(row.excluded) if document not in relevant)
    return Query(row.id, row.text, row.answer, row.body_system, excluded)


def _corpus(layout: Layout, problems: Problems, store: Store) -> tuple[Corpus, int]:
    """Return the corpus and the number of rows of its source. The source is read only if it has changed."""
    stats = [(str(path.resolve()), path.stat()) for path in layout.corpus_files]
    note = digest(
        ["corpus source 3", type(layout).__name__]
        + [[path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino] for path, s in stats]
    )
    known = store.recall(note)
    artefact = store.get("corpus", known["fingerprint"]) if known else None
    if known is None or artefact is None:
        new = Problems()
        scratch = store.scratch()
        written = write_corpus(layout.documents(new), scratch, new)
        known = {
            "fingerprint": written.fingerprint,
            "rows": written.rows,
            "notices": new.notices,
            "flaws": [(layout.corpus_files.index(f.path), f.line, f.message, f.cause) for f in new.flaws],
        }
        artefact = store.add("corpus", written.fingerprint, scratch, {})
        if not new.problems and not new.dropped:  # otherwise read and report it again next time
            store.remember(note, known)
        problems.take(new)
    else:
        for file, line, message, cause in known["flaws"]:
            problems.flaw(layout.corpus_files[file], line, message, cause)
        problems.notices += known["notices"]
    return Corpus.open(artefact.path, known["fingerprint"]), known["rows"]


def _local_folder(card: DatasetCard) -> Path:
    folder = Path(card.folder)
    if not folder.is_dir():
        raise UserError(f"the card of {card.name} names the folder {folder}, which does not exist")
    return folder


def _path(word: str) -> Path:
    """Return the path that a word means. An impossible path is treated as one that does not exist."""
    try:
        path = Path(word).expanduser()
        path.exists()
    except RuntimeError:  # ~ of an unknown user
        return Path(word)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        return Path("\0")
    return path


def name_of(word: str | Path, store: Store | None = None) -> str:
    """Return the name of a dataset in records. The card in a folder may give another name than that of the folder."""
    folder = _path(str(word))
    if not folder.is_dir():
        return str(word)
    own = _card_of(folder)
    return _name_here(own.name if own else _folder_name(folder), folder, store or default_store())


def _name_here(name: str, folder: Path, store: Store) -> str:
    """Return the name of the dataset in a folder: own/NAME if NAME is reserved and the data is not the benchmark's.

    A copy can be the benchmark's only if the benchmark's fingerprint is known here and the copy has as many queries and
    relevant documents, which are quick to read. Fingerprints are compared when the copy is loaded.
    """
    if not is_reserved(name):
        return name
    if not known_fingerprint(name, store):
        return own_name(name)
    try:
        layout = detect(folder)
        qrels = gather(layout.judgements(Problems()), layout.qrels_file, Problems())
        queries = _queries(layout, qrels, Problems())
    except UserError:  # reported when it is read
        return own_name(name)
    positives = (sum(grade > 0 for grade in grades.values()) for grades in qrels.values())
    return name if has_benchmark_counts(name, len(queries), positives) else own_name(name)


def _card_of(folder: Path, name: str = "") -> DatasetCard | None:
    own = folder / "card.toml"
    name = name or _folder_name(folder)
    return read_card(own, name) if own.is_file() else cards().get(name)


def _folder_name(folder: Path) -> str:
    return folder.resolve().name or "dataset"
