"""Put the content of a pack into a store and a folder of results. Everything is verified before anything is written.

Each part is written completely or not at all, and a record is written after all that it needs. So a killed `unpack`
leaves a sound store, and the next one finishes the work.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from r2med.evaluation.records.answer_record import AnswerRecord
from r2med.evaluation.records.record import Record
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import add_labels
from r2med.foundation.store.files import replaced, sha256, write_atomically
from r2med.foundation.store.manifest import MANIFEST
from r2med.foundation.store.memo import memo_rows
from r2med.publication.packs.gathering import command_of
from r2med.publication.packs.pack_manifest import PackManifest, PackPart
from r2med.publication.packs.pack_scores import scored_keys
from r2med.publication.packs.packed_answers import answer_command, nuggets_path
from r2med.publication.packs.packed_rows import differing_rows
from r2med.publication.packs.verified_pack import OpenPack, PackedArtefact, pack_faults, verified_pack

ROWS_AT_ONCE = 10_000


@dataclass(frozen=True)
class Unpacked:
    """What `unpack` did."""

    manifest: PackManifest
    """The manifest of the pack."""
    written: int
    """Number of artefacts, rows and files that were written."""
    known: int
    """Number of artefacts, rows and files that were here already."""
    data: tuple[Path, ...] = ()
    """Folders of the datasets that were in the pack."""
    commands: tuple[str, ...] = ()
    """The commands that read everything else from the pack, made from the settings of its records."""
    unscored: tuple[str, ...] = ()
    """The datasets that are not on this machine. Their records are marked until they are scored."""


def unpack_file(file: str, out: Path, data: Path, sha256: str, store: Store, keep_mine: bool = False) -> Unpacked:
    """Put a pack, a file or a URL, into the store, its records into `out`, and its documents into `data`."""
    from r2med.publication.packs.local_pack import local_pack

    with local_pack(file, sha256, store) as path, verified_pack(path) as pack:
        with pack_faults(path):
            plan = _Unpacking(pack, store, out, data, scored_keys(pack, store))
            if (differing := list(plan.differing())) and not keep_mine:
                raise _conflict(path, differing)
        return plan.carry_out()


def _conflict(path: Path, differing: list[str]) -> UserError:
    more = f" and {len(differing) - 1:,} more" if differing[1:] else ""
    return UserError(
        f"{path}: {differing[0]}{more} is here with another content: ",
        Setting("unpack", keep_mine=True),
        " keeps yours and takes the rest; or set R2MED_HOME and ",
        Setting("unpack", out=...),
        " to other folders",
    )


class _Unpacking:
    """What is to be written, and what is here already."""

    def __init__(self, pack: OpenPack, store: Store, out: Path, data: Path, scored: Collection[str]) -> None:
        self.pack, self.store, self.out, self.folder, self.scored = pack, store, out, data, scored
        self.written = self.known = 0

    def differing(self) -> Iterator[str]:
        """Yield the name of everything that is here with another content."""
        for artefact in self.pack.artefacts:
            if not self._same_files(artefact):
                yield _name(artefact)
        for part, file in self.pack.rows():
            for block in _blocks(self.pack.lines(part)):
                for key in differing_rows(self.store.root / file, block):
                    yield f"{file.stem} {key.hex()[:8]}"
        for part, path in self.pack.results():
            if not self._same_result(part, self.out / path):
                yield str(self.out / path)
        for name, parts in self.pack.data().items():
            if not self._same_data(self.folder / name, parts):
                yield str(self.folder / name)

    def carry_out(self) -> Unpacked:
        """Write everything that is not here. What is here stays as it is."""
        for artefact in self.pack.artefacts:
            self._add_artefact(artefact)
        for part, file in self.pack.rows():
            self._add_rows(part, self.store.root / file)
        folders = []
        for name, parts in self.pack.data().items():
            folders.append(self.folder / name)
            self._add_data(self.folder / name, parts)
        for part, path in self.pack.results():
            self._add_result(part, self.out / path)
        marked = [record for record in self.pack.manifest.records if record.key not in self.scored]
        return Unpacked(
            self.pack.manifest,
            self.written,
            self.known,
            tuple(folders),
            tuple(pack_commands(self.pack, self.out)),
            tuple(dict.fromkeys(record.dataset for record in marked)),
        )

    def _same_files(self, artefact: PackedArtefact) -> bool:
        """Return True if the store has no such artefact, or one with the same files."""
        own = self.store.get(artefact.kind, artefact.key)
        if own is None:
            return True
        files = json.loads((own.path / MANIFEST).read_bytes())["files"]
        return {name: facts["sha256"] for name, facts in files.items()} == {
            name: part.sha256 for name, part in artefact.files.items()
        }

    def _add_artefact(self, artefact: PackedArtefact) -> None:
        if (own := self.store.get(artefact.kind, artefact.key)) is None:
            scratch = self.store.scratch()
            for name, part in artefact.files.items():
                self.pack.copy(part, scratch / name)
            # A ranking is searched again when it is first used, if the store has what that needs.
            mark = {"unpacked": True} if artefact.kind == "run" else {}
            own = self.store.add(artefact.kind, artefact.key, scratch, {**artefact.meta, **mark})
            self.written += 1
        else:
            self.known += 1
        add_labels(own.path, own.meta, artefact.datasets)

    def _add_rows(self, part: PackPart, file: Path) -> None:
        with memo_rows(file, part.datasets) as table:
            for block in _blocks(self.pack.lines(part)):
                here = table.get(list(block))
                table.put({key: value for key, value in block.items() if key not in here})
                self.written += len(block) - len(here)
                self.known += len(here)

    def _same_result(self, part: PackPart, path: Path) -> bool:
        """Return True if there is no such file, or one with the same content. Two records may differ in their costs."""
        if not path.exists() or (path.is_file() and sha256(path) == part.sha256):
            return True
        if not part.is_record or not path.is_file():
            return self._is_kept(part, path)
        kind = Record if part.kind == "records" else AnswerRecord
        own, theirs = kind.read(path), kind.parse(self.pack.read(part), path)
        return (own.key, own.per_query) == (theirs.key, theirs.per_query)

    def _is_kept(self, part: PackPart, path: Path) -> bool:
        """Return True if a file belongs to a record of this folder with the same scores, which stays with its files."""
        records = [each for each in self.pack.results() if each[0].is_record and each[0].key == part.key]
        return any((self.out / own).is_file() and self._same_result(found, self.out / own) for found, own in records)

    def _add_result(self, part: PackPart, path: Path) -> None:
        if path.exists():
            self.known += 1
            return
        if part.is_record and part.key not in self.scored:
            kind = Record if part.kind == "records" else AnswerRecord
            kind.parse(self.pack.read(part), path).model_copy(update={"unpacked": True}).write(path)
        else:
            write_atomically(path, self.pack.read(part))
        self.written += 1

    def _same_data(self, folder: Path, parts: list[PackPart]) -> bool:
        if not folder.exists():
            return True
        files = {part.path.rpartition("/")[2]: part.sha256 for part in parts}
        return all((folder / name).is_file() and sha256(folder / name) == sha for name, sha in files.items())

    def _add_data(self, folder: Path, parts: list[PackPart]) -> None:
        if folder.exists():
            self.known += len(parts)
            return
        with replaced(folder, "corpus.jsonl", "a dataset") as new:
            for part in parts:
                self.pack.copy(part, new / part.path.rpartition("/")[2])
        self.written += len(parts)


def pack_commands(pack: OpenPack, out: Path) -> Iterator[str]:
    """Yield the commands of the records of a pack. Those in its manifest are the words of a stranger."""
    with_texts = {part.key for part in pack.manifest.parts if part.path.startswith("generations/")}
    texts = str(out / "generations")
    records = [record for record, _ in pack.records()]
    runs = Counter((record.display_name, record.dataset.name) for record in records)
    found = {
        record.key: command_of(
            record, "URL", texts * (record.key in with_texts), repeats=runs[record.display_name, record.dataset.name]
        )
        for record in records
    }
    files = {path for _, path in pack.results()}
    for answers, path in pack.answer_records():
        nuggets = out / nuggets_path(path) if nuggets_path(path) in files else ""
        found[answers.key] = answer_command(answers, "", "URL", nuggets=nuggets)
    yield from dict.fromkeys(found[record.key] for record in pack.manifest.records)


def _name(artefact: PackedArtefact) -> str:
    return f"{artefact.kind} {artefact.key[:8]}"


def _blocks(rows: Iterator[tuple[bytes, bytes]]) -> Iterator[dict[bytes, bytes]]:
    """Yield rows in blocks that fit into memory."""
    while block := dict(islice(rows, ROWS_AT_ONCE)):
        yield block
