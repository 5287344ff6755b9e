"""The page of a pack: what it holds and what it saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.foundation.pages.cells import Column, Value
from r2med.foundation.pages.page import Note, Page, Table, table_page
from r2med.foundation.text.plurals import counted, shown_bytes
from r2med.publication.packs.pack_manifest import PackManifest

_SAVED_NAMES = {
    "llm_calls": "calls of LLMs",
    "llm_tokens": "tokens of LLMs",
    "encoded_texts": "encoded texts",
    "encoder_seconds": "seconds of encoders",
    "dollars": "dollars",
}


def pack_page(manifest: PackManifest, file: Path, typed: Sequence[str]) -> Page:
    """Return what a pack holds and what it saves."""
    counts, sizes = Counter(part.kind for part in manifest.parts), Counter[str]()
    for part in manifest.parts:
        sizes[part.kind] += part.size
    inside: list[list[Value]] = [[kind, counts[kind], shown_bytes(sizes[kind])] for kind in sorted(counts)]
    datasets: list[list[Value]] = [
        [each.name, each.licence or "not stated", each.source or "own data"] for each in manifest.datasets
    ]
    saved: list[list[Value]] = [[_SAVED_NAMES.get(name, name), f"{value:,g}"] for name, value in manifest.saves.items()]
    commands: list[list[Value]] = [[command] for command in dict.fromkeys(typed)]
    size = file.stat().st_size if file.is_file() else 0
    head = f"{file.name}: {counted(len(manifest.records), 'record')}, {shown_bytes(size)}, by r2med {manifest.r2med}"
    tables = [
        Table((Column("part"), Column("files", "integer"), Column("size", "number")), inside),
        Table((Column("dataset"), Column("licence"), Column("source")), datasets),
        Table((Column("it saves"), Column("amount", "number")), saved),
        Table((Column("command", whole=True),), commands),
    ]
    notes = [Note(head, whole=True), *(Note(line, "warning") for line in _warnings(manifest))]
    return table_page("Pack", *(table for table in tables if table.rows), notes=notes)


def _warnings(manifest: PackManifest) -> Iterator[str]:
    """Yield what a person should know before passing on a pack of data without a licence."""
    named = ", ".join(each.name for each in manifest.datasets if not each.licence)
    if named and any(part.kind in ("vectors", "texts", "rerankings", "answers") for part in manifest.parts):
        yield (
            f"The licence of {named} is not stated. Vectors and answers of LLMs can reveal the texts behind them: "
            "pass this pack on only to people who may read those."
        )
