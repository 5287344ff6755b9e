"""Dataset cards: one TOML file each, and the groups that follow from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from r2med.core import plugins
from r2med.core.cards import Catalogue, read_toml, validated
from r2med.core.errors import UserError, checked_name

BENCHMARK = "R2MED"
"""The group of the published benchmark. Plugins cannot add members to it or to the groups of its tasks."""

OWN_PREFIX = "own/"
"""The prefix for a user's dataset that has the name of a benchmark dataset, as in `own/Biology`."""


class _CardPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hub(_CardPart):
    """The repository of a dataset on the hub. The revision is pinned so that a score always refers to the same data."""

    repository: str
    """ORG/NAME."""
    revision: str
    """The commit."""


class Counts(_CardPart):
    """The number of rows that the files of a dataset must have."""

    queries: int
    """Rows of the query file."""
    documents: int
    """Rows of the corpus."""
    positives: int
    """Judged pairs with a grade above 0."""
    most_positives: int
    """The largest number of relevant documents of one query."""


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
    """The name of the dataset on the command line. The default is the name of the card file."""
    short: str = ""
    """A name for narrow table columns."""
    task: str = ""
    """The task of the benchmark that the dataset belongs to. Datasets of one task are averaged."""
    scenario: str = ""
    """The clinical setting of the queries."""
    kind: str = ""
    """The kind of prompt templates to use: post, exam, case or similar-case."""
    licence: str = ""
    """The licence of the texts."""
    judges: tuple[str, ...] = ()
    """The families of the LLMs that judged the documents. Systems that use one of them are flagged."""
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
    counts: Counts | None = None
    """The row counts that are checked after fetching."""
    instruction: Instruction | None = None
    """The instruction for instruction-tuned models. The default is one for medical questions."""

    @property
    def task_group(self) -> str:
        """The name of the group of all datasets of this task, as typed on the command line."""
        return self.task.replace(" ", "-")


# Fields that a card inherits from the card named by `like`: the nature of the task, not facts about that data.
INHERITED_FIELDS = ("short", "task", "scenario", "kind", "order", "instruction")


def read_card(file: Traversable | Path, name: str, seen: tuple[str, ...] = ()) -> DatasetCard:
    """Read one card. `like = "MedQA-Diag"` inherits task, scenario, kind and instruction of that card."""
    content = read_toml(file)
    if "like" in content:
        like = content.pop("like")
        # Read the file and not the catalogue, which may be waiting for this very card.
        known = plugins.files("datasets", ".toml")
        if not isinstance(like, str) or like not in known or like in seen:
            why = "which is like this one" if like in seen else "but there is no such card"
            raise UserError(f"{file}: like = {str(like)[:60]!r}, {why}")
        model = read_card(known[like], like, (*seen, like))
        content = {field: getattr(model, field) for field in INHERITED_FIELDS} | content
    card = validated(DatasetCard, {"name": name, **content}, file)
    if card.folder and isinstance(file, Path):
        card = card.model_copy(update={"folder": str(file.parent / _expanded(card.folder, file))})
    return card


def _expanded(folder: str, file: Path) -> Path:
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        raise UserError(f"{file}: folder = {folder!r} names the home folder of an unknown user") from None


class _Datasets(Catalogue[DatasetCard]):
    """Every dataset's card by name, in the benchmark's order."""

    def _read_all(self, plugin_folders: str) -> Mapping[str, DatasetCard]:
        cards = []
        for name, file in plugins.files(self.kind, ".toml").items():
            try:
                cards.append(self._checked(name, file))
            except UserError as error:
                plugins.leave_out(file, self.kind, error)
        return {card.name: card for card in sorted(cards, key=lambda card: (card.order, card.name))}

    def _checked(self, name: str, file: Traversable) -> DatasetCard:
        card = read_card(file, checked_name(name, self.noun))
        if name not in benchmark_cards() and (taken := {*card.groups} & _benchmark_groups()):
            raise UserError(f"{file}: {taken.pop()} is a group of the published benchmark: choose a name of your own")
        return card


_DATASETS = _Datasets("datasets", DatasetCard, "dataset", "r2med data list shows all")


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
        own_task = BENCHMARK in card.groups or card.task_group not in _benchmark_groups()
        for group in dict.fromkeys((*card.groups, *([card.task_group] if own_task else []))):
            if group:
                members.setdefault(group, []).append(card.name)
    members["demo"] = [f"demo/{name}" for name in cards() if demo_folder(name).is_dir()]
    return {group: tuple(names) for group, names in members.items()}


@cache
def benchmark_cards() -> Mapping[str, DatasetCard]:
    """Return the benchmark's cards, which come with this package. Plugins cannot change them."""
    folder = next(plugins.folders("datasets"))
    files = {file.name.removesuffix(".toml"): file for file in folder.iterdir() if file.name.endswith(".toml")}
    return {name: read_card(file, name) for name, file in files.items()}


def _benchmark_groups() -> set[str]:
    return {BENCHMARK, *(card.task_group for card in benchmark_cards().values())}


def demo_folder(name: str) -> Path:
    """Return the folder of the bundled small version of a dataset."""
    return Path(__file__).parent / "demo" / checked_name(name, "dataset")
