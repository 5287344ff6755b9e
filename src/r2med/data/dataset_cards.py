"""Dataset cards, which are TOML files of one dataset or of one family, and the groups that follow from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from r2med.foundation.core.errors import UserError, checked_name
from r2med.foundation.core.names import Catalogue, RawCard, cards_in, folders_of, raw_cards, read_toml, validated

BENCHMARK = "R2MED"
"""The group of the published benchmark. Plugins cannot add members to it or to other groups of this package."""

OWN_DATA = "own data"
"""The group in which datasets without a group are averaged."""

OWN_PREFIX = "own/"
"""The prefix for a user's dataset that has the name of a benchmark dataset, as in `own/Biology`."""


class _CardPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HubFiles(_CardPart):
    """The files of a repository whose names do not say what they hold. Each value is a pattern such as `PPR/*.tsv`."""

    documents: str
    """The files of the corpus."""
    queries: str = ""
    """The files of the queries."""
    judgements: str = ""
    """The files of the qrels."""


class Hub(_CardPart):
    """The repository of a dataset on the hub. The revision is pinned so that a score always refers to the same data."""

    repository: str
    """ORG/NAME."""
    revision: str = ""
    """The commit. Without one, the newest is looked up at the first use, and then used for good."""
    config: str = ""
    """The config (subset) to read, such as a language, if the repository has several."""
    split: str = ""
    """The split to read, if the repository has several."""
    files: HubFiles | None = None
    """The files of each part, for a repository without a known layout."""

    @property
    def is_whole(self) -> bool:
        """True if the repository holds one dataset in R2MED's layout, and all its files are fetched."""
        return bool(self.revision) and not (self.config or self.split or self.files)


class Counts(_CardPart):
    """The number of rows that the files of a dataset must have."""

    queries: int
    """Rows of the query file."""
    documents: int
    """Rows of the corpus."""
    positives: int
    """Judged pairs with a grade above 0."""
    most_positives: int = 0
    """The largest number of relevant documents of one query. 0: it is not known and not checked."""


class Instruction(_CardPart):
    """The parts of an instruction for instruction-tuned models. A model card uses them as {kind}, {inst_query} etc."""

    kind: str
    """The kind of query, as in "Given a {kind}, retrieve {what}"."""
    what: str
    """The kind of text to retrieve, as in "Given a {kind}, retrieve {what}"."""
    domain: str
    """The subject, as in "Represent the {domain} paragraph"."""
    inst_query: str = ""
    """The instruction of Instructor models before a query. The default is made from `kind`."""
    inst_document: str = ""
    """The instruction of Instructor models before a document. The default is made from `domain`."""

    def fill(self, text: str) -> str:
        """Return the text with the names in braces replaced by the values of this dataset."""
        words = {
            "kind": self.kind,
            "what": self.what,
            "domain": self.domain,
            "inst_query": self.inst_query or f"Represent the {self.kind} for retrieving relevant paragraphs: ",
            "inst_document": self.inst_document or f"Represent the {self.domain} paragraph for retrieval: ",
        }
        return re.sub(r"\{(\w+)\}", lambda name: words.get(name[1], name[0]), text)


ANY_DATASET = Instruction(
    kind="medical question", what="relevant passages that help answer the question", domain="Medical"
)
"""The instruction for a dataset whose card has none."""


class DatasetCard(_CardPart):
    """The description of a dataset."""

    name: str
    """The name of the dataset on the command line. The default is the name of the card."""
    short: str = ""
    """A name for narrow table columns."""
    task: str = ""
    """The task of the benchmark that the dataset belongs to. Datasets of one task are averaged."""
    scenario: str = ""
    """The clinical setting of the queries."""
    kind: str = ""
    """The kind of prompt templates to use: post, exam, case or similar-case."""
    answers: Literal["open", "choice"] = "open"
    """The form in which readers answer: in their own words, or by choosing one of several options."""
    licence: str = ""
    """The licence of the texts."""
    judges: tuple[str, ...] = ()
    """The families of the LLMs that judged the documents. Systems that use one of them are flagged."""
    judge_test: str = ""
    """How the LLMs that judged answered their controls, such as "judge not tested". Empty if it is not known."""
    notes: tuple[str, ...] = ()
    """Further remarks about the dataset, one sentence each."""
    order: int = 1000
    """The position in lists and tables. Ties are sorted by name."""
    groups: tuple[str, ...] = ()
    """The groups that the dataset belongs to, for `--data GROUP`."""
    also_averaged_without: bool = False
    """True if averages are also shown without this dataset."""
    hub: Hub | None = None
    """The repository that the dataset is fetched from."""
    folder: str = ""
    """The local folder of the dataset, relative to the card or starting with `~`."""
    by_hand: str = ""
    """Where to get a dataset that r2med may not or cannot fetch, in one sentence. The error message shows it."""
    qrels: str = ""
    """A qrels file that replaces the judgements of the dataset, relative to the card or starting with `~`."""
    characters: int = 0
    """The number of characters of a document that are read. 0: all."""
    languages: tuple[str, ...] = ()
    """The languages of queries and documents, such as en or de. The language of the documents is the last one."""
    counts: Counts | None = None
    """The row counts that are checked after fetching."""
    fingerprint: str = ""
    """The digest of corpus, queries and judgements, if it is known. Models are not trained on data with it."""
    instruction: Instruction | None = None
    """The instruction for instruction-tuned models. The default is one for medical questions."""

    @property
    def task_group(self) -> str:
        """The name of the group of all datasets of this task, as typed on the command line."""
        return self.task.replace(" ", "-")


# Fields that a card inherits from the card named by `like`: the nature of the task, not facts about that data.
INHERITED_FIELDS = ("short", "task", "scenario", "kind", "answers", "order", "instruction")


def _fields(raw: RawCard, seen: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """Return the fields of a card. `like = "MedQA-Diag"` inherits task, scenario, kind and instruction of that card."""
    if raw.fault:
        raise UserError(raw.fault)
    if "like" not in raw.fields:
        return raw.fields
    like = raw.fields["like"]
    known = raw_cards("datasets")  # not the catalogue, which may be waiting for this very card
    if not isinstance(like, str) or like not in known or like in seen:
        why = "which is like this one" if like in seen else "but there is no such card"
        raise UserError(f"{raw.file}: like = {str(like)[:60]!r}, {why}")
    model = _fields(known[like], (*seen, like))
    inherited = {field: model[field] for field in INHERITED_FIELDS if field in model}
    return {**inherited, **{field: value for field, value in raw.fields.items() if field != "like"}}


def _checked(raw: RawCard, name: str) -> DatasetCard:
    """Return a card with its fields checked. Paths on a card are relative to it."""
    card = validated(DatasetCard, {"name": name, **_fields(raw)}, raw.file)
    for field in ("folder", "qrels"):
        if (path := getattr(card, field)) and isinstance(raw.file, Path):
            try:
                absolute = raw.file.parent / Path(path).expanduser()
            except RuntimeError:
                raise UserError(f"{raw.file}: {field} = {path!r} names the home folder of an unknown user") from None
            card = card.model_copy(update={field: str(absolute)})
    return card


def read_card(file: Traversable | Path, name: str) -> DatasetCard:
    """Read the card of a file that holds one, such as `card.toml` in the folder of a dataset."""
    return _checked(RawCard(file, fields=read_toml(file)), name)


class _Datasets(Catalogue[DatasetCard]):
    """Every dataset's card by name, in the benchmark's order."""

    def checked(self) -> Mapping[str, DatasetCard]:
        return dict(sorted(super().checked().items(), key=lambda item: (item[1].order, item[0])))

    def read(self, raw: RawCard, name: str) -> dict[str, DatasetCard]:
        if raw.origin == "built-in":
            return {name: bundled_cards()[name]}
        card = _checked(raw, name)
        if name not in bundled_cards() and (taken := sorted({*card.groups} & _bundled_groups())):
            raise UserError(f"{raw.file}: {taken[0]} is a group that comes with r2med: choose a name of your own")
        return {name: card}


_DATASETS = _Datasets("datasets", DatasetCard, "dataset", "r2med list datasets shows all")


def cards() -> Mapping[str, DatasetCard]:
    """Return every card by name, in the benchmark's order."""
    return _DATASETS


def short_name(dataset: str) -> str:
    """Return the name of a dataset for narrow table columns."""
    if dataset.startswith(OWN_PREFIX):  # has the name of a benchmark dataset, but is not that dataset
        return dataset
    last = dataset.rstrip("/").split("/")[-1]
    card = cards().get(last)
    return card.short if card and card.short else last or dataset


def groups() -> Mapping[str, tuple[str, ...]]:
    """Return group -> dataset names: the groups on the cards, one per task of the benchmark, and the bundled demo."""
    members: dict[str, list[str]] = {BENCHMARK: [], "demo": []}
    for card in cards().values():
        own_task = card.name in bundled_cards() or card.task_group not in _bundled_groups()
        for group in dict.fromkeys((*card.groups, *([card.task_group] if own_task else []))):
            if group:
                members.setdefault(group, []).append(card.name)
    members["demo"] = [f"demo/{name}" for name in cards() if f"demo/{name}" in demo_cards()]
    return {group: tuple(names) for group, names in members.items()}


def home_group(dataset: str) -> str:
    """Return the group in which a dataset is averaged: the first group of its card, the demo, or `OWN_DATA`.

    Scores of different groups are never averaged together. The name is that without overlays.
    """
    if dataset in demo_cards():
        return "demo"
    card = cards().get(dataset)
    return card.groups[0] if card and card.groups else OWN_DATA


@cache
def bundled_cards() -> Mapping[str, DatasetCard]:
    """Return the cards that come with this package. Plugins cannot change them, and their names are reserved."""
    return {name: _checked(raw, name) for name, raw in cards_in(folders_of("datasets")[0]).items()}


@cache
def demo_cards() -> Mapping[str, DatasetCard]:
    """Return the cards of the bundled demo by name, such as `demo/Biology`."""
    folders = [folder for folder in (Path(__file__).parent / "demo").iterdir() if folder.is_dir()]
    names = {f"demo/{folder.name}": folder / "card.toml" for folder in folders}
    return {name: read_card(file, name) for name, file in names.items()}


@cache
def _bundled_groups() -> frozenset[str]:
    return frozenset(group for card in bundled_cards().values() for group in (*card.groups, card.task_group) if group)


def demo_folder(name: str) -> Path:
    """Return the folder of the bundled small version of a dataset."""
    return Path(__file__).parent / "demo" / checked_name(name, "dataset")


# The names of known datasets. Only data from the source of a known dataset may have its name.


def is_reserved(name: str) -> bool:
    """Return True if a name belongs to the benchmark or to the bundled demo."""
    return name in bundled_cards() or name.startswith("demo/")


def is_known_set(name: str, source: str, fingerprint: str) -> bool:
    """Return True if data are the known dataset of this name: from the source of its card, or with its demo's texts."""
    if name in demo_cards():
        return fingerprint == demo_cards()[name].fingerprint
    return is_source_of(name, source)


def own_name(name: str, source: str = "") -> str:
    """Return the name of data from a source: own/NAME for a reserved name, unless they come from its card's source."""
    return f"{OWN_PREFIX}{name.rpartition('/')[2]}" if is_reserved(name) and not is_source_of(name, source) else name


def is_source_of(name: str, source: str) -> bool:
    """Return True if data of this source are the dataset of this name. A card without a revision allows any commit."""
    known = source_of(name)
    return bool(source) and bool(known) and (source == known or (known.endswith("@") and source.startswith(known)))


def source_of(name: str) -> str:
    """Return the source of the benchmark's dataset of this name as REPOSITORY@REVISION."""
    card = bundled_cards().get(name)
    return f"{card.hub.repository}@{card.hub.revision}" if card and card.hub else ""
