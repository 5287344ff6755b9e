"""The manifest of a pack: its parts with their hashes, the datasets with their licences, and what the pack saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from r2med.evaluation.records.answer_record import SUFFIX as ANSWERS_SUFFIX
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError, unknown

FORMAT = 1
MANIFEST_NAME = "manifest.json"
ENDING = ".r2pack"

PartKind = Literal["records", "runs", "texts", "rerankings", "pairs", "vectors", "answers", "corpus"]
CHOICES: tuple[str, ...] = tuple(kind for kind in get_args(PartKind) if kind != "records")
"""What `--with` may name. Records are always inside."""
DEFAULT = tuple(kind for kind in CHOICES if kind != "corpus")

KIND_OF_ROWS: Mapping[str, PartKind] = {"scores": "pairs", "api": "vectors"}
"""Folder of the store -> what its rows are. Answers of LLMs are texts, rerankings or answers to questions."""


class _PackValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PackPart(_PackValue):
    """One file of a pack."""

    path: str
    """Where the part is in the zip. The path says where its content belongs."""
    kind: PartKind
    """What it is, as in `--with`."""
    key: str = ""
    """The key of the record or the artefact that it belongs to. Rows have their keys inside."""
    size: int = Field(ge=0)
    """Size in bytes."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """The SHA-256 of its bytes."""
    datasets: tuple[str, ...] = ()
    """The datasets that it belongs to."""
    licence: str = ""
    """The licence of these datasets; empty if it is not stated."""

    @property
    def is_record(self) -> bool:
        """True if it is a record, of a system or of answers, and not a file beside one."""
        return self.kind == "records" or (self.kind == "answers" and self.path.endswith(ANSWERS_SUFFIX))


class PackedDataset(_PackValue):
    """A dataset of the records in a pack."""

    name: str
    """The name of the dataset in its records."""
    fingerprint: str
    """A digest of the corpus, the queries and the judgements."""
    licence: str = ""
    """The licence of its texts; empty if its card does not say."""
    source: str = ""
    """REPOSITORY@REVISION of a dataset of the hub; empty for a user's folder."""


class PackedRecord(_PackValue):
    """A record in a pack, and the command that reads everything it needs from the pack."""

    system: str
    """The system, as typed."""
    dataset: str
    """The name of the dataset."""
    key: str
    """The key of the record."""
    command: str
    """The command that gives this record from what is in the pack."""


class PackManifest(_PackValue):
    """What is in a pack."""

    format: int = FORMAT
    """The number of this format."""
    r2med: str
    """The version of r2med that wrote the pack."""
    records: tuple[PackedRecord, ...]
    """The records."""
    datasets: tuple[PackedDataset, ...]
    """The datasets of the records."""
    saves: dict[str, float] = {}
    """What need not be done again: calls and tokens of LLMs, texts and seconds of encoders, dollars."""
    parts: tuple[PackPart, ...]
    """All other files of the zip, sorted by path."""


def chosen_kinds(wanted: object) -> tuple[str, ...]:
    """Return the names of --with, each once. Raises UserError if a name is unknown."""
    if isinstance(wanted, str) or not isinstance(wanted, list | tuple | set | frozenset):
        raise UserError("the parts of a pack are a list of names, such as ['runs', 'texts']")
    for name in wanted:
        if name not in CHOICES:
            raise unknown("part of a pack", str(name), CHOICES)
    return tuple(kind for kind in CHOICES if kind in wanted)


def saved_values(cost: Cost) -> dict[str, Any]:
    """Return the values of a cost that a person wants to save, without those that are 0."""
    values = {
        "llm_calls": cost.calls,
        "llm_tokens": cost.llm_tokens,
        "encoded_texts": cost.texts,
        "encoder_seconds": round(cost.encoder_seconds, 3),
        "dollars": round(cost.dollars, 6),
    }
    return {name: value for name, value in values.items() if value}
