"""Dataset cards: one TOML file each, and the groups that follow from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from r2med import plugins
from r2med.errors import UserError, checked_name
from r2med.toml_card import read_toml, validated


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Hub(_Part):
    """Where a dataset lies on the hub; the revision is pinned so that a number means one set of data."""

    repository: str
    revision: str


class Counts(_Part):
    """How many rows its files must have."""

    queries: int
    documents: int
    positives: int
    most_positives: int


class Lengths(_Part):
    """Mean tokens."""

    query: float
    document: float


class Instruction(_Part):
    """Words for instruction-tuned models; a model card's prefix names them as {kind}, {inst_query} and so on."""

    kind: str
    """What a query is, as in "Given a {kind}, retrieve {what}"."""
    what: str
    domain: str
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
    short: str = ""
    """A name for narrow table columns."""
    task: str = ""
    scenario: str = ""
    kind: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()
    order: int = 1000
    groups: tuple[str, ...] = ()
    also_averaged_without: bool = False
    hub: Hub | None = None
    counts: Counts | None = None
    published_lengths: Lengths | None = None
    instruction: Instruction | None = None

    @property
    def task_group(self) -> str:
        """The name of the group of all datasets of this task, as one types it."""
        return self.task.replace(" ", "-")


# What a card may take over from the one it is `like`: the nature of the task, not the facts of that data.
INHERITED = ("short", "task", "scenario", "kind", "order", "instruction")


def read_card(file: Traversable | Path, name: str, seen: tuple[str, ...] = ()) -> DatasetCard:
    """Read one card; `like = "MedQA-Diag"` takes over task, scenario, kind and instruction of that card."""
    content = read_toml(file)
    if like := content.pop("like", None):
        # From the files and not from `cards()`, which may be waiting for this very card.
        known = plugins.files("datasets", ".toml")
        if like not in known or like in seen:
            why = "which is like this one" if like in known else "but there is no such card"
            raise UserError(f"{file}: like = {like!r}, {why}")
        model = read_card(known[like], like, (*seen, like))
        content = {field: getattr(model, field) for field in INHERITED} | content
    return validated(DatasetCard, {"name": name, **content}, file)


@cache
def cards() -> Mapping[str, DatasetCard]:
    """Return every card by name, in the benchmark's order."""
    found = [
        read_card(file, checked_name(name, "dataset")) for name, file in plugins.files("datasets", ".toml").items()
    ]
    return {card.name: card for card in sorted(found, key=lambda card: (card.order, card.name))}


@cache
def groups() -> Mapping[str, tuple[str, ...]]:
    """Return group -> names of datasets: those the cards name, one per task, and the bundled demo."""
    found: dict[str, list[str]] = {"R2MED": [], "demo": []}
    for card in cards().values():
        for group in (*card.groups, card.task_group):
            if group:
                found.setdefault(group, []).append(card.name)
    found["demo"] = [f"demo/{name}" for name in cards() if demo_folder(name).is_dir()]
    return {group: tuple(names) for group, names in found.items()}


def demo_folder(name: str) -> Path:
    """Return where the bundled small version of a dataset lies."""
    return Path(__file__).parent / "demo" / checked_name(name, "dataset")
