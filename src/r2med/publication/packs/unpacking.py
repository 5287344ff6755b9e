"""Put the content of a pack into a store and a folder of results.

A pack is a file of a stranger: names, sizes and hashes are checked while it is copied into a temporary folder, before
anything is written. What is here already stays as it is. Each part is written completely or not at all, and records
come after all that they need, so that a killed `unpack` is finished by the next one. What cannot be checked is if a
vector or an answer is right: a pack is as good as its maker.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import shlex
import shutil
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from r2med.data import Dataset
from r2med.evaluation.records.local_datasets import dataset_here
from r2med.evaluation.records.record import ANSWERS_SUFFIX, Record
from r2med.evaluation.records.record_checks import record_faults
from r2med.evaluation.records.record_facts import DatasetFacts
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.running.evaluation import DEPTH
from r2med.foundation.core.errors import UserError, explained
from r2med.foundation.net.download import download
from r2med.foundation.store import Store
from r2med.foundation.store.files import map_array, refuse_device, sha256, write_atomically
from r2med.foundation.store.memo import memo_rows
from r2med.models.llm.journal import decoded_answer
from r2med.publication.leaderboard.answer_verification import answer_record_faults
from r2med.publication.leaderboard.verification import run_faults
from r2med.publication.packs.pack_file import FORMAT, KINDS, MANIFEST_NAME, META_NAME, ROWS, PackedFile, PackManifest
from r2med.publication.packs.packing import values_of

MAX_FILES = 1_000_000
MAX_MANIFEST = 512 << 20
MAX_RATIO = 200
"""How many times larger a file may become. Rows of a pack become three to thirty times larger."""
ROWS_AT_ONCE = 10_000

_NAME = r"[\w.+=@%-]{1,180}"
_ARTEFACT = re.compile(
    rf"artefacts/(?P<kind>{'|'.join(KINDS)})/(?P<key>[0-9a-f]{{32}})/({re.escape(META_NAME)}|[a-z_]{{1,40}}\.npy)"
)
_ROWS = re.compile(rf"rows/(?P<folder>{'|'.join(ROWS)})/(?P<name>{_NAME})/[0-9a-f]{{12}}\.jsonl")
_RESULT = re.compile(rf"results(/{_NAME}){{1,4}}/{_NAME}\.(json|trec\.gz|generated\.jsonl|answers\.jsonl)")


@dataclass(frozen=True)
class Unpacked:
    """What `unpack` did."""

    manifest: PackManifest
    """The manifest of the pack."""
    written: int
    """Number of artefacts, rows and files that were written."""
    known: int
    """Number of artefacts, rows and files that were here already."""
    commands: tuple[str, ...] = ()
    """The commands that read everything from the pack, made from the settings of its records."""
    unscored: tuple[str, ...] = ()
    """The datasets that are not on this machine. The scores of their records were not computed again."""


@dataclass
class _Unpacking:
    """A pack whose files are in a folder, and where they go."""

    folder: Path
    manifest: PackManifest
    store: Store
    out: Path
    records: dict[str, Record] = field(default_factory=dict)
    """Path in the pack -> record."""
    written: int = 0
    known: int = 0

    def read(self) -> None:
        """Read all that must be understood before anything is written. Raises UserError if something cannot be."""
        for each in self.manifest.files:
            path = self.folder / each.path
            if _ROWS.fullmatch(each.path):
                for _ in _rows(path):
                    pass
            elif path.name == META_NAME:
                _metadata(path)
            elif path.suffix == ".npy":
                map_array(path)  # raises ValueError for what is no array of plain numbers
            elif path.suffix == ".json":
                self.records[each.path] = _record(each.path, path.read_bytes())

    def score(self) -> tuple[str, ...]:
        """Score runs and answers again. Return the datasets that are not here. Raises UserError for other scores."""
        datasets: dict[str, Dataset | None] = {}

        def here(facts: DatasetFacts) -> Dataset | None:
            if facts.fingerprint not in datasets:
                datasets[facts.fingerprint] = dataset_here(facts, self.store)
            return datasets[facts.fingerprint]

        missing: dict[str, None] = {}
        for path, record in self.records.items():
            if (dataset := here(record.dataset)) is None:
                missing[record.dataset.name] = None
            elif fault := _score_fault(record, (self.folder / path).parent, dataset):
                raise UserError(f"{path}: {fault}")
        return tuple(missing)

    def write(self) -> None:
        """Add what is not here."""
        artefacts: dict[tuple[str, str], tuple[str, ...]] = {}
        results = []
        for each in self.manifest.files:
            if match := _ARTEFACT.fullmatch(each.path):
                artefacts[match["kind"], match["key"]] = each.datasets
            elif match := _ROWS.fullmatch(each.path):
                self._add_rows(each, self.store.root / match["folder"] / f"{match['name']}.sqlite")
            else:
                results.append(each.path)
        for (kind, key), datasets in artefacts.items():
            self._add_artefact(kind, key, datasets)
        for path in sorted(results, key=lambda path: (path in self.records, path)):
            self._add_result(path)

    def _add_artefact(self, kind: str, key: str, datasets: tuple[str, ...]) -> None:
        folder = self.folder / "artefacts" / kind / key
        meta = _metadata(folder / META_NAME)
        store = self.store.about(*datasets, model=str(meta.pop("about", {}).get("model", "")))
        if store.get(kind, key) is not None:
            self.known += 1
            return
        (folder / META_NAME).unlink()
        store.add(kind, key, folder, meta)
        self.written += 1

    def _add_rows(self, part: PackedFile, file: Path) -> None:
        rows = _rows(self.folder / part.path)
        with memo_rows(file, part.datasets) as table:
            while block := dict(islice(rows, ROWS_AT_ONCE)):
                added = table.add(block)
                self.written += added
                self.known += len(block) - added

    def _add_result(self, path: str) -> None:
        target = self.out / path.removeprefix("results/")
        if target.exists():
            self.known += 1
            return
        write_atomically(target, (self.folder / path).read_bytes())
        self.written += 1


def unpack_file(file: str, out: Path, digest: str, store: Store) -> Unpacked:
    """Put a pack, a file or a URL, into the store, and its records into `out`."""
    with store.scratch() as scratch:
        path = _local(file, digest, scratch)
        folder = scratch / "pack"
        with pack_faults(path):
            pack = _Unpacking(folder, _extract(path, folder), store, out)
            pack.read()
            unscored = pack.score()
        pack.write()
        return Unpacked(pack.manifest, pack.written, pack.known, tuple(_commands(pack.records.values())), unscored)


def read_manifest(path: Path) -> PackManifest:
    """Return the manifest of a pack. Raises UserError if the file is not a pack."""
    with pack_faults(path), zipfile.ZipFile(path) as archive:
        return _manifest(archive, path)


@contextlib.contextmanager
def pack_faults(path: Path) -> Iterator[None]:
    """Turn every fault of a pack into one line."""
    refuse_device(path)
    if path.is_fifo():  # opening it would wait for ever
        raise UserError(f"{path} is a pipe, not a file: write the pack to a file first")
    try:
        yield
    except UserError as error:
        raise UserError(f"{path} is not a pack that can be used: {error}; nothing was written") from None
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, OSError) as error:
        reason = str(error)[:100] or type(error).__name__
        raise UserError(f"{path} is not a pack, or it is damaged ({reason}); nothing was written") from None


def _local(file: str, digest: str, folder: Path) -> Path:
    """Return the path of a pack on this machine. A URL is fetched into `folder`.

    Raises UserError if the digest is missing for a URL, or if the file has another one.
    """
    wanted = digest.strip().lower()
    if wanted and not re.fullmatch("[0-9a-f]{64}", wanted):
        raise UserError("the digest must be the SHA-256 of the pack, 64 characters of 0-9 and a-f")
    if "://" not in file:
        path = Path(file).expanduser()
        if wanted and path.is_file() and sha256(path) != wanted:
            raise UserError(f"{path} has another SHA-256 than {wanted[:12]}…; nothing was written")
        return path
    if not wanted:
        raise UserError(
            "a pack from a URL needs its digest, which its maker publishes: r2med unpack URL --sha256 DIGEST"
        )
    path = folder / "fetched.r2pack"
    if download(file, path, shutil.disk_usage(folder).free // 2) != wanted:
        raise UserError(f"the file at the URL has another SHA-256 than {wanted[:12]}…; nothing was written")
    return path


def _extract(path: Path, folder: Path) -> PackManifest:
    """Copy the files of a pack into a new folder, and return its manifest. Raises UserError for the first fault."""
    with zipfile.ZipFile(path) as archive:
        manifest = _manifest(archive, path)
        size = sum(part.size for part in manifest.files)
        if size > (free := shutil.disk_usage(folder.parent).free):
            raise UserError(f"it would take {size:,} bytes, and only {free:,} are free")
        for part in manifest.files:
            if not any(pattern.fullmatch(part.path) for pattern in (_ARTEFACT, _ROWS, _RESULT)):
                raise UserError(f"{ascii(part.path)[:80]} is not a file that a pack holds")
            target = folder / part.path
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(archive, part, target)
    return manifest


def _manifest(archive: zipfile.ZipFile, path: Path) -> PackManifest:
    infos = archive.infolist()
    if len(infos) > MAX_FILES:
        raise UserError(f"it has {len(infos):,} files, and at most {MAX_FILES:,} are read")
    names: set[str] = set()
    for info in infos:
        _check_name(info.filename, names)
        if info.file_size > max(1 << 20, MAX_RATIO * info.compress_size):
            raise UserError(
                f"{ascii(info.filename)[:80]} would become {info.file_size:,} bytes from {info.compress_size:,}"
            )
    if sum(info.compress_size for info in infos) > path.stat().st_size:
        raise UserError("its files overlap")
    sizes = {info.filename: info.file_size for info in infos}
    if sizes.get(MANIFEST_NAME, MAX_MANIFEST) >= MAX_MANIFEST:
        raise UserError("it has no manifest.json of a pack")
    manifest = _parsed(archive.read(MANIFEST_NAME))
    del sizes[MANIFEST_NAME]
    listed = {part.path: part.size for part in manifest.files}
    if len(listed) != len(manifest.files) or listed != sizes:
        raise UserError("its files are not those of its manifest")
    return manifest


def _check_name(name: str, names: set[str]) -> None:
    """Raise UserError for a name that could be written elsewhere, or that another file has, and add it to `names`."""
    odd = any(not sign.isprintable() or sign in '\\:*?"<>|' for sign in name) or len(name) > 1000
    if odd or any(part in ("", ".", "..") for part in name.split("/")):
        raise UserError(f"{ascii(name)[:80]} is not a plain name of a file")
    folded = unicodedata.normalize("NFC", name).casefold()  # two such names are one file on macOS and Windows
    if folded in names:
        raise UserError(f"{ascii(name)[:80]} is in it twice")
    names.add(folded)


def _parsed(content: bytes) -> PackManifest:
    try:
        body = json.loads(content)
        written = body["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError("its manifest cannot be read") from None
    if written != FORMAT:
        raise UserError(f"it has format {str(written)[:20]}, and this version reads format {FORMAT}: update r2med")
    try:
        return PackManifest(**body)
    except ValidationError as error:
        raise UserError(f"its manifest has a wrong value: {explained(error)[:200]}") from None


def _copy(archive: zipfile.ZipFile, part: PackedFile, target: Path) -> None:
    """Write a file of a pack. Raises UserError if its size or its hash is wrong."""
    sha, size = hashlib.sha256(), 0
    with archive.open(part.path) as source, target.open("wb") as file:
        while block := source.read(1 << 20):
            size += len(block)
            if size > part.size:
                break
            sha.update(block)
            file.write(block)
    if size != part.size or sha.hexdigest() != part.sha256:
        raise UserError(f"{part.path} has other bytes than its manifest says")


def _rows(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the value of each row. Raises UserError if a line is no row, or no answer in the journal."""
    of_llms = path.parent.parent.name == "journal"
    with path.open("rb") as file:
        for line in file:
            try:
                row = json.loads(line)
                key, value = bytes.fromhex(row["key"]), base64.b64decode(row["value"], validate=True)
                if of_llms:
                    answer = json.loads(value)
                    decoded_answer(answer)  # raises an error if it is not an answer
                    if not isinstance(answer["model"], str):
                        raise ValueError
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                raise UserError(f"{path.parent.parent.name}/{path.parent.name} has a line that is not a row") from None
            yield key, value


def _metadata(path: Path) -> dict[str, Any]:
    """Return the metadata of an artefact. Raises UserError if the file has none."""
    try:
        meta = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        meta = None
    if not isinstance(meta, dict) or not isinstance(meta.get("about", {}), dict):
        raise UserError(f"the metadata of {path.parent.parent.name} {path.parent.name[:8]} are missing or damaged")
    return meta


def _record(path: str, content: bytes) -> Record:
    record = Record.parse(content, path)
    if (record.kind == "answers") != path.endswith(ANSWERS_SUFFIX):
        raise UserError(f"{path} has the name of another kind of record")
    if fault := next(record_faults(record), ""):
        raise UserError(f"{path}: {fault}")
    return record


def _score_fault(record: Record, folder: Path, dataset: Dataset) -> str:
    """Return the first difference between a record and the scores of its run or its answers; empty if there is none."""
    if record.kind == "answers":
        given = StoredRecord(record, folder / "record").given()
        return next(answer_record_faults(record, given, dataset), "")
    if record.run is None:
        return "it has no run"
    return next(run_faults(record, dataset, folder / record.run.file), "")


def _commands(records: Iterable[Record]) -> Iterator[str]:
    """Yield the commands of records of systems, with the flags that their keys depend on."""
    systems = [record for record in records if record.kind == "ranking"]
    runs = Counter((record.display_name, record.dataset.name) for record in systems)
    commands = (_command(record, runs[record.display_name, record.dataset.name]) for record in systems)
    yield from dict.fromkeys(commands)


def _command(record: Record, repeats: int) -> str:
    words = ["r2med", "run", record.system, *(["--name", record.name] if record.name else [])]
    words += ["--data", record.dataset.name]
    if record.settings["k"] != DEPTH:
        words += ["--k", str(record.settings["k"])]
    if repeats > 1:
        words += ["--repeats", str(repeats)]
    if "openvino" in values_of(record.settings, "backend"):
        words += ["--backend", "openvino"]
    elif len(dtypes := {*values_of(record.settings, "dtype")} - {"float32"}) == 1:
        words += ["--dtype", dtypes.pop()]
    if any(values_of(record.settings, "endpoint")):
        words += ["--base-url", "URL"]
    return shlex.join(words)
