"""A word for a dataset as one value: what was typed, what it means, where its files are, and its card.

A word is a name, a group, `demo/NAME`, a folder, `hub:ORG/NAME[@revision][/config][:split]` or `irds:ID`, with or
without files of labels: `NAME+FILE.jsonl`. Nothing is fetched for this value, and only the card in a folder is read.
`loading.py` loads it.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import DatasetCard, Hub, cards, demo_cards, demo_folder, groups, own_name, read_card
from r2med.data.irds import PREFIX as IRDS_PREFIX
from r2med.data.layouts import is_dataset
from r2med.data.overlays import Overlay, overlay_files
from r2med.foundation.core.errors import UserError, refuse_table
from r2med.foundation.core.flags import as_list
from r2med.foundation.store.dataset_labels import dataset_label
from r2med.foundation.text.unicode import to_unicode

log = logging.getLogger("r2med")

HUB_PREFIX = "hub:"

_HUB_PART = r"\w[\w.+=-]*"  # no part can be `..`, because records are in folders of these names
_HUB_WORD = re.compile(rf"hub:({_HUB_PART}/{_HUB_PART})(?:@({_HUB_PART}))?(?:/({_HUB_PART}))?(?::({_HUB_PART}))?")

GivenData = str | Path | Dataset
"""A dataset, its name, or its folder."""


@dataclass(frozen=True)
class DatasetWord:
    """A word and what it means."""

    word: str
    """The word, without files of labels."""
    name: str
    """The name of the dataset in records, without those of its labels. An unknown word is its own name."""
    card: DatasetCard | None = None
    """The card of this name, or the card in the folder."""
    folder: Path | None = None
    """Where the files are. None if they must be fetched first, or if the word is a group or unknown."""
    own_folder: Path | None = None
    """The folder, if a user named it by its path or on a card."""
    hub: Hub | None = None
    """The repository that the files are fetched from."""
    files_of_labels: tuple[str, ...] = ()
    """The overlays whose labels are added."""

    @classmethod
    def typed(cls, word: str | Path) -> DatasetWord:
        """Return what a person means: a dataset folder here, if it has the name of a known dataset.

        Each word that a person gives goes through this function first. Names in records and the members of groups do
        not: they are known sets, whatever folders are here. A line of the log says what was taken where both exist.
        """
        plain, files = overlay_files(str(word))
        is_known = plain in cards() or plain in groups() or plain in demo_cards()
        if is_known and Path(plain).is_dir():
            plain = f"./{plain}" if isinstance(word, Path) else _folder_or_known(plain)
        return replace(cls.parse(plain), files_of_labels=tuple(files))

    @classmethod
    def parse(cls, word: str | Path) -> DatasetWord:
        """Return the meaning of a word: a known name is the known set, never a folder. A `Path` is always a folder."""
        if isinstance(word, Path):
            return _of_folder(str(word))
        plain, files = overlay_files(word)
        if files:
            return replace(cls.parse(plain), files_of_labels=tuple(files))
        if word.startswith(IRDS_PREFIX):
            return cls(word, word.removeprefix(IRDS_PREFIX))
        if word.startswith(HUB_PREFIX):
            hub = parse_hub_word(word)
            parts = filter(None, (hub.repository, hub.config, hub.split))
            return _of_card(word, card) if (card := card_of(hub)) else cls(word, own_name("/".join(parts)), hub=hub)
        if card := cards().get(word):
            return _of_card(word, card)
        if card := demo_cards().get(word):
            return cls(word, word, card, demo_folder(word.removeprefix("demo/")))
        return cls(word, word) if word in groups() else _of_folder(word)

    def __str__(self) -> str:
        return "+".join([self.word, *self.files_of_labels])

    @property
    def record_name(self) -> str:
        """The name of the dataset in records. Files of labels are read for it: one without labels adds no name.

        Raises UserError if such a file is missing.
        """
        overlays = map(Overlay.read, self.files_of_labels)
        return "+".join([self.name, *(overlay.name for overlay in overlays if self.name in overlay.datasets)])

    @property
    def label(self) -> str:
        """The name of the dataset in the store."""
        return dataset_label(self.record_name, self.own_folder)

    def members(self) -> list[str]:
        """Return the datasets that are meant: the members of a group, the datasets in a folder, or the word itself."""
        members = groups().get(self.word) or [self.word]
        folder = None if self.word in cards() else self.folder
        if folder and folder.is_dir() and not is_dataset(folder):
            members = _datasets_in(folder) or members
        return ["+".join([member, *self.files_of_labels]) for member in members]


def _datasets_in(folder: Path) -> list[str]:
    """Return the dataset folders in a folder, in the order of the benchmark."""
    rank = {name: number for number, name in enumerate(cards())}
    paths = sorted(folder.iterdir(), key=lambda path: (rank.get(path.name, len(rank)), path))
    return [str(path) for path in paths if path.is_dir() and is_dataset(path)]


def _folder_or_known(word: str) -> str:
    """Return the folder of a known name if it is a dataset. A group and the demo have no other word, so they stay."""
    folder, card = f"./{word}", cards().get(word)
    if card and card.folder and Path(card.folder).resolve() == Path(folder).resolve():
        return word
    if card is None:
        if is_dataset(Path(folder)) or DatasetWord.parse(folder).members() != [folder]:
            log.info("%s comes with r2med: the folder of this name is %s", word, folder)
        return word
    known_source = hub_word(card.hub) if card.hub and not card.folder else card.folder or "fetched by hand"
    if is_dataset(Path(folder)):
        log.info("%s is the folder %s here, not the known dataset (%s)", word, folder, known_source)
        return folder
    log.info("%s is the known dataset (%s): the folder %s is not a dataset", word, known_source, folder)
    return word


def _of_card(word: str, card: DatasetCard) -> DatasetWord:
    """Return the meaning of a card: its folder, the folder that is filled by hand, or its repository of the hub."""
    hub = None if card.folder or card.by_hand else card.hub
    name = own_name(card.name, f"{hub.repository}@{hub.revision}" if hub else "")
    folder = Path(card.folder) if card.folder else None
    return DatasetWord(word, name, card, folder, folder, hub)


def _of_folder(word: str) -> DatasetWord:
    folder = local_path(word)
    if not folder.is_dir():
        return DatasetWord(word, word)
    # A name that is not UTF-8 has halves of surrogate pairs, which no record can hold.
    folder_name = to_unicode(folder.resolve().name) or "dataset"
    own_card = folder / "card.toml"
    card = read_card(own_card, folder_name) if own_card.is_file() else cards().get(folder_name)
    return DatasetWord(word, own_name(card.name if card else folder_name), card, folder, folder)


def local_path(word: str) -> Path:
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


def parse_hub_word(word: str) -> Hub:
    """Return the source that a word of the hub names. Raises UserError if the word has another form."""
    match = _HUB_WORD.fullmatch(word)
    if match is None:
        raise UserError(f"{word[:100]!r} is not hub:ORG/NAME, hub:ORG/NAME@REVISION, hub:ORG/NAME/CONFIG:SPLIT")
    repository, revision, config, split = (part or "" for part in match.groups())
    return Hub(repository=repository, revision=revision, config=config, split=split)


def hub_word(hub: Hub) -> str:
    """Return the word that names a source, without its revision: the card of the source has it."""
    return f"{HUB_PREFIX}{hub.repository}{hub.config and f'/{hub.config}'}{hub.split and f':{hub.split}'}"


def card_of(hub: Hub) -> DatasetCard | None:
    """Return the card that describes exactly this source, if there is one."""
    for card in cards().values():
        if card.hub is None or card.hub.repository != hub.repository or card.folder:
            continue
        same_part = (card.hub.config, card.hub.split) == (hub.config, hub.split)
        if same_part and hub.revision in ("", card.hub.revision):
            return card
    return None


def names(name_or_path: str | Path) -> list[str]:
    """Return the datasets that a word names: the members of a group, the datasets in a folder, or the word itself."""
    return DatasetWord.parse(name_or_path).members()


def given_data(data: GivenData | Collection[GivenData] | None) -> list[str | Dataset]:
    """Return what a person gave as a list of datasets and decided words. Raises UserError for a table."""
    refuse_table(data, "data", "a dataset, its name or folder; for tables in memory: r2med.Dataset.of(...)")
    return [given if isinstance(given, Dataset) else str(DatasetWord.typed(given)) for given in as_list(data)]


def each_dataset(data: Iterable[GivenData]) -> list[str | Dataset]:
    """Return the datasets of decided words and objects, each once. A group is all of its datasets."""
    datasets: list[str | Dataset] = []
    for given in data:
        members = [given] if isinstance(given, Dataset) else DatasetWord.parse(given).members()
        datasets += [dataset for dataset in members if isinstance(dataset, Dataset) or dataset not in datasets]
    return datasets


def dataset_names(words: str | Path | Collection[str | Path]) -> list[str]:
    """Return the datasets that names, groups and folders mean, each once."""
    return list(dict.fromkeys(name for word in as_list(words) for name in DatasetWord.typed(word).members()))


def data_words(data: GivenData | Collection[GivenData]) -> list[str]:
    """Return the names or folders of datasets, for functions that only look for records on them."""
    return [given.name if isinstance(given, Dataset) else given for given in given_data(data)]
