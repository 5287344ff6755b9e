"""Find a dataset by its word: a name, a group, a folder, `irds:ID` or `hub:ORG/NAME`. Hub datasets are fetched."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from r2med.data import hub as hub_client
from r2med.data.benchmark_names import own_name
from r2med.data.dataset_cards import OWN_PREFIX, DatasetCard, Hub, cards, demo_cards, demo_folder, groups, read_card
from r2med.data.hub_words import HUB_PREFIX, card_of, described, guessed_folder, hub_name, hub_word, parse_hub_word
from r2med.data.irds import PREFIX, irds_folder
from r2med.data.layouts import Layout, detect, is_dataset
from r2med.data.layouts.detect import unpack_advice
from r2med.data.layouts.hub_tables import HubTables, UnknownColumnsError
from r2med.data.overlays import overlay_files
from r2med.foundation.core.errors import UserError, nearest, nearest_path, unknown
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import dataset_label
from r2med.foundation.text.unicode import to_unicode

log = logging.getLogger("r2med")

SHOWN_DIGITS = 7
"""Number of digits of a commit in messages."""


@dataclass(frozen=True)
class Location:
    """Where a dataset is, and what is known about it before it is read."""

    name: str
    """The name of the dataset in records."""
    folder: Path
    card: DatasetCard | None
    layout: Layout
    source: str = ""
    """REPOSITORY@COMMIT of a dataset of the hub; empty for a user's folder."""
    notices: tuple[str, ...] = ()
    own_folder: Path | None = None
    """The folder, if a user named it."""

    @property
    def label(self) -> str:
        """The name of the dataset in the store."""
        return dataset_label(self.name, self.own_folder)


def unambiguous(name_or_path: str | Path) -> str:
    """Return the word of one dataset or group: `./SciFact` if a dataset folder here has the name of a known set.

    Each word that a person gives goes through this function first. Names in records and the members of groups do not:
    they are known sets, whatever folders are here. One line of the log says what was taken where both exist.
    """
    word, files = overlay_files(str(name_or_path))
    if _is_known(word) and Path(word).is_dir():
        word = f"./{word}" if isinstance(name_or_path, Path) else _folder_or_known(word)
    return "+".join([word, *files])


def _is_known(word: str) -> bool:
    return word in cards() or word in groups() or word in groups()["demo"]


def _folder_or_known(word: str) -> str:
    """Return the folder of a known name if it is a dataset. A group and the demo have no other word, so they stay."""
    folder, card = f"./{word}", cards().get(word)
    if card and card.folder and Path(card.folder).resolve() == Path(folder).resolve():
        return word
    holds_datasets = is_dataset(Path(folder)) or names(folder) != [folder]
    if card is None:
        if holds_datasets:
            log.info("%s comes with r2med: the folder of this name is %s", word, folder)
        return word
    known = hub_word(card.hub) if card.hub and not card.folder else card.folder or "fetched by hand"
    if is_dataset(Path(folder)):
        log.info("%s is the folder %s here, not the known dataset (%s)", word, folder, known)
        return folder
    log.info("%s is the known dataset (%s): the folder %s is not a dataset", word, known, folder)
    return word


def names(name_or_path: str | Path) -> list[str]:
    """Return the datasets that a word names: the members of a group, the datasets in a folder, or the word itself."""
    word, files = overlay_files(str(name_or_path))
    if files:
        return ["+".join([name, *files]) for name in names(word)]
    if members := groups().get(word):
        return list(members)
    folder = _path(word)
    if word not in cards() and folder.is_dir() and not is_dataset(folder):
        inside = sorted(path for path in folder.iterdir() if path.is_dir() and is_dataset(path))
        rank = {name: number for number, name in enumerate(cards())}
        return [str(path) for path in sorted(inside, key=lambda p: rank.get(p.name, len(rank)))] or [word]
    return [word]


def announce_fetching(words: Sequence[str], store: Store) -> None:
    """Log in one line how many bytes datasets still need from the hub, and about how many minutes that takes."""
    hubs = []
    for word in words:
        plain = overlay_files(word)[0]
        card = cards().get(plain)
        if plain.startswith(HUB_PREFIX):
            hub = parse_hub_word(plain)
            card = card_of(hub) or DatasetCard(name=plain, hub=hub)
        if card and card.hub and not (card.folder or card.by_hand):
            hubs.append(card.hub)
    hub_client.announce_downloads(hubs, store)


def locate(name_or_path: str | Path, store: Store) -> Location:
    """Return where a dataset is, and fetch it from the hub if necessary."""
    word = str(name_or_path)
    if isinstance(name_or_path, str):
        if word.startswith(PREFIX):
            folder = irds_folder(word.removeprefix(PREFIX), store)
            return Location(word.removeprefix(PREFIX), folder, None, detect(folder))
        if word.startswith(HUB_PREFIX):
            return _hub_location(parse_hub_word(word), hub_name(word), store)
        if word in cards():
            return _card_location(cards()[word], store)
        if word in groups()["demo"]:
            folder = demo_folder(word.removeprefix("demo/"))
            return Location(word, folder, _card_of(folder, word), detect(folder))
        if word in groups():
            members = groups()[word]
            raise UserError(f"{word} is a group of {len(members)} datasets: name one of them, such as {members[0]}")
    folder = _path(word)
    if folder.is_dir():
        name, card = place_name(folder), _card_of(folder)
        return Location(name, folder, card, detect(folder), notices=_renamed(name, folder), own_folder=folder)
    if folder.exists():
        importing = f"r2med data import {quote(word)} --out {quote(folder.stem)}"
        table = f"{word} is a file, and a dataset is a folder; {importing} makes one of a table"
        raise UserError(unpack_advice(folder) or table)
    known = [*cards(), *groups(), *groups()["demo"]]
    if not nearest(word, known) and (beside := nearest_path(word)):
        raise UserError(f"no dataset or folder {word!r}{beside}: r2med list datasets shows all datasets")
    raise unknown("dataset or folder", word, known, "r2med list datasets shows all")


def _card_location(card: DatasetCard, store: Store) -> Location:
    if card.folder:
        folder = _local_folder(card)
        name = own_name(card.name)
        return Location(name, folder, card, detect(folder), notices=_renamed(name, folder), own_folder=folder)
    if card.by_hand:
        folder = _folder_by_hand(card, store)
        name = own_name(card.name)
        return Location(name, folder, card, detect(folder), notices=_renamed(name, folder))
    if card.hub is None:
        raise UserError(f"the card of {card.name} names neither a folder nor a hub repository: add one, or give a path")
    if not card.hub.is_whole:
        return _tables_location(card.hub, card.name, card, store)
    folder, source = hub_client.snapshot(card.hub, store), f"{card.hub.repository}@{card.hub.revision}"
    name = own_name(card.name, source)
    return Location(name, folder, card, detect(folder), source, _renamed(name, source))


def _hub_location(hub: Hub, name: str, store: Store) -> Location:
    if card := card_of(hub):
        return _card_location(card, store)
    return _tables_location(hub, name, None, store)


def _tables_location(hub: Hub, name: str, card: DatasetCard | None, store: Store) -> Location:
    """Return the tables of a hub repository as a dataset. Tables with unknown columns are guessed."""
    fetched = hub_client.fetch_tables(hub, store.about(name))
    card = described(fetched, name) if card is None else card
    source = f"{fetched.hub.repository}@{fetched.hub.revision}"
    name = own_name(name, source)
    renamed = _renamed(name, source)
    short = source[: len(fetched.hub.repository) + 1 + SHOWN_DIGITS]
    try:
        layout = HubTables(fetched.folder, fetched.tables)
    except UnknownColumnsError as unknown_columns:
        folder, guess = guessed_folder(fetched, name, unknown_columns, store)
        return Location(name, folder, card, detect(folder), source, (f"{short}: guessed {guess}", *renamed))
    return Location(name, fetched.folder, card, layout, source, (f"{short}: {layout.summary()}", *renamed))


def _renamed(name: str, place: str | Path) -> tuple[str, ...]:
    """Return a notice about data that have the name of a known dataset and are not that dataset."""
    known = name.removeprefix(OWN_PREFIX)
    return (f"{place} is not the source of the known dataset {known}: its name is {name}",) if known != name else ()


def _folder_by_hand(card: DatasetCard, store: Store) -> Path:
    folder = store.root / "by-hand" / card.name
    if not folder.is_dir():
        raise UserError(
            f"{card.name} must be fetched by hand. {card.by_hand} Put it as corpus.jsonl, queries.jsonl and "
            f"qrels/test.tsv (BEIR's layout) into {folder}, or name another folder"
        )
    return folder


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


def place_name(word: str | Path) -> str:
    """Return the name of a dataset before it is read. The card in a folder may give it another name."""
    if isinstance(word, str) and word.startswith(HUB_PREFIX):
        card = card_of(parse_hub_word(word))
        return place_name(card.name) if card else hub_name(word)
    if isinstance(word, str) and (known := cards().get(word)):
        hub = None if known.folder or known.by_hand else known.hub
        return own_name(word, f"{hub.repository}@{hub.revision}" if hub else "")
    if (folder := place_folder(word)) is None:
        return str(word)
    card = _card_of(folder)
    return own_name(card.name if card else _folder_name(folder))


def place_folder(word: str | Path) -> Path | None:
    """Return the user's folder that a word means: its path, or the folder that a card of this name states."""
    if isinstance(word, str) and (card := cards().get(word) or demo_cards().get(word)):
        return Path(card.folder) if card.folder else None
    folder = _path(str(word))
    return folder if folder.is_dir() else None


def _card_of(folder: Path, name: str = "") -> DatasetCard | None:
    own = folder / "card.toml"
    name = name or _folder_name(folder)
    return read_card(own, name) if own.is_file() else cards().get(name)


def _folder_name(folder: Path) -> str:
    # A name that is not UTF-8 has halves of surrogate pairs, which no record can hold.
    return to_unicode(folder.resolve().name) or "dataset"
