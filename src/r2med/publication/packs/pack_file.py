"""What a pack is: a zip of records and of what they read from the store, with a manifest of its files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Page, Paragraph, Table, table_page
from r2med.foundation.store.memo import MEMOS
from r2med.foundation.text.plurals import counted, shown_bytes

FORMAT = 1
MANIFEST_NAME = "manifest.json"
META_NAME = "meta.json"
"""The file of the metadata of an artefact, beside its arrays."""
KINDS = (
    "run",
    "vectors",
    "query-vectors",
    "token-vectors",
    "query-token-vectors",
    "term-weights",
    "query-term-weights",
)
"""Kinds of artefacts that a pack may hold. Indexes are left out: they are made from the others in seconds."""
ROWS = ("journal", "scores", "api")
"""Folders of the store whose rows a pack may hold: answers of LLMs, scores of rerankers, vectors of APIs."""


class _PackValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PackedFile(_PackValue):
    """One file of a pack."""

    path: str
    """Where it is in the zip. The path says where its content belongs."""
    size: int = Field(ge=0)
    """Size in bytes."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """The SHA-256 of its bytes."""
    datasets: tuple[str, ...] = ()
    """The datasets that it belongs to."""


class PackedRecord(_PackValue):
    """A record in a pack."""

    system: str
    """The system, as typed; with its reader if the record is one of answers."""
    dataset: str
    """The name of the dataset."""


class PackManifest(_PackValue):
    """What is in a pack."""

    format: int = FORMAT
    """The number of this format."""
    r2med: str
    """The version of r2med that wrote the pack."""
    records: tuple[PackedRecord, ...]
    """The records."""
    files: tuple[PackedFile, ...]
    """All other files of the zip, sorted by path."""


def pack_page(manifest: PackManifest, file: Path) -> Page:
    """Return what a pack holds."""
    counts, sizes = Counter(_part(each.path) for each in manifest.files), Counter[str]()
    for each in manifest.files:
        sizes[_part(each.path)] += each.size
    parts: list[list[Value]] = [[part, counts[part], shown_bytes(sizes[part])] for part in sorted(counts)]
    records: list[list[Value]] = [[each.system, each.dataset] for each in manifest.records]
    head = f"{file.name}: {counted(len(records), 'record')}, {shown_bytes(file.stat().st_size)}, by r2med "
    return table_page(
        "Pack",
        Table((Column("part"), Column("files", "integer"), Column("size", "number")), parts),
        Table((Column("system"), Column("dataset")), records),
        notes=[Paragraph(head + manifest.r2med, no_wrap=True)],
    )


def _part(path: str) -> str:
    """Return what a file of a pack is, in words."""
    top, kind, *_ = path.split("/")
    if top == "rows" and kind in MEMOS:
        return MEMOS[kind].rows
    return f"{kind} of the store" if top == "artefacts" else top
