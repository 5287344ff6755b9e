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
"""The group of the published benchmark: it and its tasks have the members that this package gives them, no others."""

OWN = "own/"
"""Before the name of a dataset of the user's that is called like one of the benchmark: `own/Biology`."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hub(_Part):
    """Where a dataset lies on the hub; the revision is pinned so that a number means one set of data."""

    repository: str
    """ORG/NAME."""
    revision: str
    """The commit."""


class Counts(_Part):
    """How many rows its files must have."""

    queries: int
    """Rows of the file of queries."""
    documents: int
    """Rows of the corpus."""
    positives: int
    """Judged pairs with a grade above 0."""
    most_positives: int
    """The most that one query has."""


class Instruction(_Part):
    """Words for instruction-tuned models; a model card's prefix names them as {kind}, {inst_query} and so on."""

    kind: str
    """What a query is, as in "Given a {kind}, retrieve {what}"."""
    what: str
    """What is to be found."""
    domain: str
    """The subject, as in "Represent the {domain} paragraph"."""
    inst_query: str = ""
    """What Instructor's models are told before a query; by default made of `kind`."""
    inst_document: str = ""
    """What Instructor's models are told before a document; by default made of `domain`."""

    def fill(self, text: str) -> str:
        """Return the text with this dataset's words in place of their names in braces."""
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


class DatasetCard(_Part):
    """All that is known of a dataset besides its contents."""

    name: str
    """What one types; by default the name of the file."""
    short: str = ""
    """A name for narrow table columns."""
    task: str = ""
    """The task of the benchmark that it belongs to; datasets of one task are averaged."""
    scenario: str = ""
    """The clinical setting that its queries come from."""
    kind: str = ""
    """Which prompt templates are used: post, exam, case or similar-case."""
    licence: str = ""
    """Under which its texts may be used."""
    judges: tuple[str, ...] = ()
    """The families of the LLMs that judged its documents: systems that use one of them are flagged."""
    notes: tuple[str, ...] = ()
    """What else one should know, a sentence each."""
    order: int = 1000
    """Where it stands in lists and tables; ties by name."""
    groups: tuple[str, ...] = ()
    """Names that stand for it and others: `--data GROUP`."""
    also_averaged_without: bool = False
    """Whether averages are shown without it too."""
    hub: Hub | None = None
    """Where it is fetched from."""
    folder: str = ""
    """Where it lies on this machine; relative to the card, or from `~`."""
    counts: Counts | None = None
    """What is checked after fetching."""
    instruction: Instruction | None = None
    """Words for instruction-tuned models; without it, those for medical questions."""

    @property
    def task_group(self) -> str:
        """The name of the group of all datasets of this task, as one types it."""
        return self.task.replace(" ", "-")


# What a card may take over from the one it is `like`: the nature of the task, not the facts of that data.
INHERITED = ("short", "task", "scenario", "kind", "order", "instruction")


def read_card(file: Traversable | Path, name: str, seen: tuple[str, ...] = ()) -> DatasetCard:
    """Read one card; `like = "MedQA-Diag"` takes over task, scenario, kind and instruction of that card."""
    content = read_toml(file)
    if "like" in content:
        like = content.pop("like")
        # From the files and not from the catalogue, which may be waiting for this very card.
        known = plugins.files("datasets", ".toml")
        if not isinstance(like, str) or like not in known or like in seen:
            why = "which is like this one" if like in seen else "but there is no such card"
            raise UserError(f"{file}: like = {str(like)[:60]!r}, {why}")
        model = read_card(known[like], like, (*seen, like))
        content = {field: getattr(model, field) for field in INHERITED} | content
    card = validated(DatasetCard, {"name": name, **content}, file)
    if card.folder and isinstance(file, Path):
        card = card.model_copy(update={"folder": str(file.parent / _expanded(card.folder, file))})
    return card


def _expanded(folder: str, file: Path) -> Path:
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        raise UserError(f"{file}: folder = {folder!r} names the home folder of nobody") from None


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
    """Return a dataset's name for narrow columns."""
    if dataset.startswith(OWN):  # called like one of the benchmark's, and none of them
        return dataset
    last = dataset.rstrip("/").split("/")[-1]
    card = cards().get(last)
    return card.short if card and card.short else last or dataset


def groups() -> Mapping[str, tuple[str, ...]]:
    """Return group -> names of datasets: those the cards name, one per task of the benchmark, and the bundled demo."""
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
    """Return the cards that come with this package: those of the benchmark, whatever plugins add or replace."""
    folder = next(plugins.folders("datasets"))
    files = {file.name.removesuffix(".toml"): file for file in folder.iterdir() if file.name.endswith(".toml")}
    return {name: read_card(file, name) for name, file in files.items()}


def _benchmark_groups() -> set[str]:
    return {BENCHMARK, *(card.task_group for card in benchmark_cards().values())}


def demo_folder(name: str) -> Path:
    """Return where the bundled small version of a dataset lies."""
    return Path(__file__).parent / "demo" / checked_name(name, "dataset")
