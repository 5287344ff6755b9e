"""Load the dataset of a word: fetch its files if necessary, find their layout, and read them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from r2med.data import hub as hub_client
from r2med.data.aspects_file import aspect_rows, gather_aspects
from r2med.data.corpus import Corpus, store_corpus
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.data.dataset_cards import OWN_PREFIX, DatasetCard, Hub, cards, demo_cards, groups
from r2med.data.dataset_word import DatasetWord, GivenData, local_path
from r2med.data.irds import PREFIX as IRDS_PREFIX
from r2med.data.irds import irds_folder
from r2med.data.layouts import Layout, detect
from r2med.data.layouts.detect import unpack_advice
from r2med.data.layouts.hub_listing import card_metadata
from r2med.data.layouts.hub_tables import HubTables
from r2med.data.overlays import Overlay, add_labels, given_overlays
from r2med.data.problems import DocumentRow, Problems, where
from r2med.data.qrels_file import gather, read_judgements
from r2med.data.source_rows import QueryRow
from r2med.foundation.core.errors import UserError, nearest, nearest_path, refuse_table, unknown
from r2med.foundation.store import Store, default_store, digest
from r2med.foundation.store.files import file_state
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted

log = logging.getLogger("r2med")

SHOWN_DIGITS = 7
"""Number of digits of a commit in messages."""


def load(name_or_path: str | Path, store: Store | None = None) -> Dataset:
    """Load one dataset by its name, `demo/NAME`, `hub:ORG/NAME`, `irds:ID` of ir_datasets, or the path of a folder.

    `NAME+FILE.jsonl` adds the labels of an overlay.
    """
    refuse_table(
        name_or_path, "a dataset", "a name or a folder; for tables in memory: r2med.Dataset.of(queries, corpus, qrels)"
    )
    return load_dataset(DatasetWord.typed(name_or_path), store)


def loaded(given: GivenData, store: Store | None = None) -> Dataset:
    """Return the dataset, which is loaded if its name or folder is given."""
    return given if isinstance(given, Dataset) else load(given, store)


def with_overlays(
    dataset: str | Path | Dataset,
    overlays: str | Path | Overlay | Sequence[str | Path | Overlay],
) -> Dataset:
    """Return the dataset with the labels of overlays, called NAME+OVERLAY.

    An overlay without labels for this dataset changes nothing. Raises UserError if an overlay names a query or document
    that the dataset does not have.
    """
    return add_labels(loaded(dataset), given_overlays(overlays))


def load_dataset(word: str | Path | DatasetWord, store: Store | None = None) -> Dataset:
    """Load a dataset by a word whose meaning is decided: a known name is the known set, never a folder.

    What a person typed is loaded by `load`.
    """
    meant = word if isinstance(word, DatasetWord) else DatasetWord.parse(word)
    if meant.files_of_labels:
        plain = load_dataset(replace(meant, files_of_labels=()), store)
        return _labelled(plain, [Overlay.read(file) for file in meant.files_of_labels])
    problems = Problems()
    dataset, _ = read(meant, problems, store or default_store())
    problems.raise_first(meant.word)
    for notice in dataset.notices:
        log.info("%s", notice)
    return dataset


def load_new(folder: Path, name: str, own_folder: Path | None, store: Store) -> Dataset:
    """Load a folder that will be moved or removed. In the store it has the name and the folder of the dataset."""
    return load_dataset(replace(DatasetWord.parse(folder), name=name, own_folder=own_folder), store)


def _labelled(dataset: Dataset, overlays: Sequence[Overlay]) -> Dataset:
    """Return the dataset with overlays. One without labels for it is reported, since scores do not show it."""
    for overlay in overlays:
        if dataset.name not in overlay.datasets:
            labelled = ", ".join(overlay.datasets)
            log.info("overlay %s labels %s and changes nothing in %s", overlay.name, labelled, dataset.name)
    return add_labels(dataset, overlays)


def announce_fetching(words: Sequence[str], store: Store) -> None:
    """Log in one line how many bytes datasets still need from the hub, and about how many minutes that takes."""
    hubs = [hub for word in words if (hub := DatasetWord.parse(word).hub)]
    if missing := [hub for hub in hubs if not hub_client.is_fetched(hub, store)]:
        hub_client.announce_downloads(missing)


def read(word: DatasetWord, problems: Problems, store: Store) -> tuple[Dataset, Layout]:
    """Read as much of a dataset as possible. Faults are reported to `problems`."""
    name, card, source = word.name, word.card, ""
    if word.hub:
        layout, card, source = _fetched(word, word.hub, problems, store)
    else:
        layout = detect(_folder(word, store))
    if (known := name.removeprefix(OWN_PREFIX)) != name:
        place = source or layout.root
        problems.notice(f"{place} is not the source of the known dataset {known}: its name is {name}")
    qrels = _qrels(layout, card, problems)
    queries = _queries(layout, qrels, problems)
    corpus = _corpus(layout, card, problems, store.about(word.label, alone=True))
    aspects = gather_aspects(aspect_rows(layout, problems), problems)
    flaws = [f"{name}: {len(problems.flaws)} flaws (r2med data check {quoted(layout.root)})"] if problems.flaws else []
    dataset = Dataset(
        *(name, queries, corpus, qrels, card, layout.root, source),
        notices=(*problems.notices, *flaws, *_unknown(name, queries, corpus, qrels)),
        aspects=aspects,
        own_folder=word.own_folder,
    )
    return dataset, layout


def _folder(word: DatasetWord, store: Store) -> Path:
    """Return the folder that a word means, and write that of ir_datasets first if necessary."""
    if word.word.startswith(IRDS_PREFIX):
        return irds_folder(word.name, store)
    if word.folder:
        if not word.folder.is_dir():  # the folder of a path exists, or the word would be unknown
            raise UserError(f"the card of {word.word} names the folder {word.folder}, which does not exist")
        return word.folder
    if word.card and word.card.by_hand:
        return _folder_by_hand(word.card, store)
    raise _not_a_dataset(word)


def _fetched(word: DatasetWord, hub: Hub, problems: Problems, store: Store) -> tuple[Layout, DatasetCard, str]:
    """Return layout, card and source of a repository of the hub: R2MED's layout, or tables."""
    if word.card and hub.is_whole:
        return detect(hub_client.snapshot(hub, store)), word.card, f"{hub.repository}@{hub.revision}"
    fetched = hub_client.fetch_tables(hub, store.about(word.name))
    layout = HubTables(fetched.folder, fetched.tables)
    problems.notice(f"{hub.repository}@{fetched.hub.revision[:SHOWN_DIGITS]}: {layout.summary()}")
    licence = str(card_metadata(fetched.folder).get("license") or "")
    card = word.card or DatasetCard(name=word.name, hub=fetched.hub, licence=licence)
    return layout, card, f"{hub.repository}@{fetched.hub.revision}"


def _folder_by_hand(card: DatasetCard, store: Store) -> Path:
    folder = store.root / "by-hand" / card.name
    if not folder.is_dir():
        raise UserError(
            f"{card.name} must be fetched by hand. {card.by_hand} Put it as corpus.jsonl, queries.jsonl and "
            f"qrels/test.tsv (BEIR's layout) into {folder}, or name another folder"
        )
    return folder


def _not_a_dataset(meant: DatasetWord) -> UserError:
    """Return the error for a word without a dataset: a group, a file, a card without a source, or an unknown word."""
    word = meant.word
    if meant.card:
        return UserError(f"the card of {word} names neither a folder nor a hub repository: add one, or give a path")
    if members := groups().get(word):
        return UserError(f"{word} is a group of {len(members)} datasets: name one of them, such as {members[0]}")
    file = local_path(word)
    if file.exists():
        importing = f"r2med data import {quote(word)} --out {quote(file.stem)}"
        table = f"{word} is a file, and a dataset is a folder; {importing} makes one of a table"
        return UserError(unpack_advice(file) or table)
    known_words = [*cards(), *groups(), *demo_cards()]
    if not nearest(word, known_words) and (beside := nearest_path(word)):
        return UserError(f"no dataset or folder {word!r}{beside}: r2med list datasets shows all datasets")
    return unknown("dataset or folder", word, known_words, "r2med list datasets shows all")


def _qrels(layout: Layout, card: DatasetCard | None, problems: Problems) -> Qrels:
    """Return the judgements of the dataset, or those of the file that its card names instead."""
    if not (card and card.qrels):
        return gather(layout.judgements(problems), layout.qrels_file, problems)
    path = Path(card.qrels)
    if not path.is_file():
        raise UserError(f"the card of {card.name} names the qrels file {path}, which does not exist")
    problems.notice(f"the judgements are those of {path}, which the card of {card.name} names")
    return gather(read_judgements(path, problems), path, problems)


def _queries(layout: Layout, qrels: Qrels, problems: Problems) -> tuple[Query, ...]:
    """Return the queries. Of rows with one id the last counts, with a notice."""
    rows: dict[str, QueryRow] = {}
    repeated = 0
    other_texts: list[str] = []
    for row in layout.queries(problems):
        query = row.query
        if earlier := rows.get(query.id):
            repeated += 1
            if earlier.query.text != query.text:
                line = where(earlier.path, earlier.line, seen_from=row.path)
                other_texts.append(f"{query.id!r}: {line} and {row.path.name}:{row.line}")
        rows[query.id] = row
    if repeated:
        also = f"; {len(other_texts):,} ids came with another text, and the last one counts" if other_texts else ""
        example = f" (such as {other_texts[0]})" if other_texts else ""
        problems.notice(f"{layout.query_file}: {repeated:,} repeated rows merged{also}{example}")
    queries = [row.query for row in rows.values() if row.query.id in qrels or not layout.judged_queries_only]
    if len(queries) < len(rows):
        problems.notice(f"{layout.query_file}: {len(rows) - len(queries)} queries of other splits left out")
    return tuple(replace(query, excluded=_excluded(query, qrels)) for query in queries)


def _excluded(query: Query, qrels: Qrels) -> tuple[str, ...]:
    """Return the documents that are left out of the results. Relevant ones are not."""
    grades = qrels.get(query.id, {})
    return tuple(document for document in dict.fromkeys(query.excluded) if grades.get(document, 0) <= 0)


def _unknown(name: str, queries: tuple[Query, ...], corpus: Corpus, qrels: Qrels) -> list[str]:
    """Return a notice if the qrels name missing queries or documents. These count as not found and lower scores."""
    lost = len(set(qrels) - {query.id for query in queries})
    relevant = {document for grades in qrels.values() for document, grade in grades.items() if grade > 0}
    missing = int((corpus.rows(list(relevant)) < 0).sum())
    parts = [counted(lost, "query", "queries")] * bool(lost) + [counted(missing, "relevant document")] * bool(missing)
    words = " and ".join(parts)
    return [f"{name}: the qrels name {words} absent from the dataset, which count as not found"] if parts else []


def _corpus(layout: Layout, card: DatasetCard | None, problems: Problems, store: Store) -> Corpus:
    """Return the corpus. Its source is read only if it has changed.

    Documents are cut after the number of characters that the card states.
    """
    characters = card.characters if card else 0
    note = digest(
        ["corpus source 3", type(layout).__name__, *layout.reading, *([characters] if characters else [])]
        + [[str(path.resolve()), *file_state(path)] for path in layout.corpus_files]
    )
    known = store.recall(note)
    if known and (artefact := store.get("corpus", known["fingerprint"])):
        for file, line, message, cause in known["flaws"]:  # an empty text is the only flaw of documents
            problems.flaw(layout.corpus_files[file], line, message, cause, check="empty-documents")
        problems.notices += known["notices"]
        return Corpus.open(artefact.path, known["fingerprint"])
    new = Problems()
    corpus = store_corpus(_cut(layout, characters, new) if characters else layout.documents(new), store, new)
    if not new.problems and not new.dropped:  # otherwise read and report it again next time
        flaws = [(layout.corpus_files.index(flaw.path), flaw.line, flaw.message, flaw.cause) for flaw in new.flaws]
        store.remember(note, {"fingerprint": corpus.fingerprint, "notices": new.notices, "flaws": flaws})
    problems.take(new)
    return corpus


def _cut(layout: Layout, characters: int, problems: Problems) -> Iterator[DocumentRow]:
    """Yield the documents, without what is longer than the card of the dataset allows. The cuts are counted."""
    count = 0
    for document in layout.documents(problems):
        if len(document.text) > characters:
            count += 1
            document = replace(document, text=document.text[:characters])
        yield document
    if count:
        problems.notice(f"{counted(count, 'document')} cut after {characters:,} characters, as the card says")
