"""Open a pack of someone else and check every byte of it before anything is written.

A pack is a zip file that anyone may have made. Names, links, sizes and hashes are checked, and each part must have the
form of its kind. What cannot be checked is whether a vector or an answer is right: a pack is as good as its maker.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from r2med.evaluation.records.answer_checks import answer_faults
from r2med.evaluation.records.answer_record import SUFFIX, AnswerRecord, answer_key, answers_path
from r2med.evaluation.records.collection import may_be_record
from r2med.evaluation.records.record import FileFacts, Record, record_key
from r2med.evaluation.records.record_checks import record_faults
from r2med.evaluation.records.repeats import repeat_fault
from r2med.foundation.core.errors import UserError, explained
from r2med.foundation.store.files import refuse_device
from r2med.foundation.store.manifest import MANIFEST
from r2med.foundation.store.reads import PACKED_KINDS
from r2med.publication.packs.artefact_checks import PackedArray, arrays_fault, is_artefact
from r2med.publication.packs.pack_manifest import FORMAT, KIND_OF_ROWS, MANIFEST_NAME, PackManifest, PackPart
from r2med.publication.packs.packed_rows import FORMATS, read_row

MAX_PARTS = 1_000_000
MAX_MANIFEST = 512 << 20
BLOCK_VALUES = 1 << 20
"""Number of values of an array that are checked at once."""
MAX_LINE = 64 << 20
"""Bytes of the longest row. The longest answer of an LLM is far shorter."""
MAX_RATIO = 200
"""How many times larger a part may become. Rows of a pack become three to thirty times larger."""

_NAME = r"[\w.+=@%-]{1,180}"
_KEY = "[0-9a-f]{32}"
_RESULT = re.compile(
    rf"results(/{_NAME}){{1,4}}/{_NAME}\.(json|trec\.gz|ir_metadata\.yml|generated\.jsonl|traces\.json"
    r"|answers\.jsonl|nuggets\.jsonl)"
)
_ARTEFACT = re.compile(rf"artefacts/(?P<kind>[a-z-]+)/(?P<key>{_KEY})/(?P<file>manifest\.json|[a-z_]{{1,40}}\.npy)")
_ROWS = re.compile(
    rf"rows/(?P<kind>texts|rerankings|pairs|vectors|answers)/(?P<folder>[a-z]+)/(?P<name>{_NAME})/[0-9a-f]{{12}}\.jsonl"
)
_GENERATIONS = re.compile(rf"generations(/{_NAME}){{3,5}}\.jsonl")
_DATA = re.compile(
    rf"data/(?P<name>{_NAME})/(?P<file>(query|corpus|qrels|aspects|nuggets)\.jsonl|README\.md|card\.toml)"
)


@dataclass(frozen=True)
class PackedArtefact:
    """An artefact in a pack."""

    kind: str
    key: str
    files: dict[str, PackPart]
    """Name of a file -> its part."""
    meta: dict[str, Any]
    datasets: tuple[str, ...]


@dataclass(frozen=True)
class OpenPack:
    """A pack that was verified."""

    path: Path
    archive: zipfile.ZipFile
    manifest: PackManifest
    artefacts: tuple[PackedArtefact, ...]

    def rows(self) -> Iterator[tuple[PackPart, Path]]:
        """Yield the parts with rows, and the file of the store that they belong to, relative to the store."""
        for part in self.manifest.parts:
            if match := _ROWS.fullmatch(part.path):
                yield part, Path(match["folder"], f"{match['name']}.sqlite")

    def results(self) -> Iterator[tuple[PackPart, Path]]:
        """Yield the parts of a folder of results, with their paths in it. Records come after their files."""
        found = [part for part in self.manifest.parts if part.path.startswith(("results/", "generations/"))]
        for part in sorted(found, key=lambda each: (each.is_record, each.path)):
            yield part, Path(part.path.removeprefix("results/"))

    def records(self) -> Iterator[tuple[Record, Path]]:
        """Yield the records of systems, with their paths in a folder of results."""
        for part, path in self.results():
            if part.kind == "records":
                yield Record.parse(self.read(part), path), path

    def answer_records(self) -> Iterator[tuple[AnswerRecord, Path]]:
        """Yield the records of answers, with their paths in a folder of results."""
        for part, path in self.results():
            if part.kind == "answers" and part.is_record:
                yield AnswerRecord.parse(self.read(part), path), path

    def beside(self, path: Path, facts: FileFacts | None, folder: Path) -> Path | None:
        """Copy the file beside a record into a folder and return its path; None if the pack does not hold it."""
        return self.copied(path.parent / facts.file, folder) if facts else None

    def copied(self, place: Path, folder: Path) -> Path | None:
        """Copy a file of the results into a folder and return its path; None if the pack does not hold it."""
        part = next((part for part, other in self.results() if other == place), None)
        if part is None:
            return None
        self.copy(part, folder / place.name)
        return folder / place.name

    def array(self, part: PackPart) -> npt.NDArray[Any]:
        """Return an array of an artefact."""
        return _array(self.archive, part).whole()

    def data(self) -> dict[str, list[PackPart]]:
        """Return name of a folder -> the files of a dataset."""
        folders: dict[str, list[PackPart]] = {}
        for part in self.manifest.parts:
            if match := _DATA.fullmatch(part.path):
                folders.setdefault(match["name"], []).append(part)
        return folders

    def lines(self, part: PackPart) -> Iterator[tuple[bytes, bytes]]:
        """Yield the key and the value of each row of a part."""
        folder = part.path.split("/")[2]
        with self.archive.open(part.path) as file:
            while line := file.readline(MAX_LINE + 1):
                if len(line) > MAX_LINE:
                    raise UserError("a row is too long")
                yield read_row(line, folder)

    def copy(self, part: PackPart, target: Path) -> None:
        """Write a part to a file. Raises UserError if it changed since it was verified."""
        with target.open("wb") as file:
            _checked(self.archive, part, file)

    def read(self, part: PackPart) -> bytes:
        """Return the bytes of a small part."""
        with self.archive.open(part.path) as file:
            return file.read(part.size + 1)


@contextlib.contextmanager
def verified_pack(path: Path) -> Iterator[OpenPack]:
    """Yield a pack whose every byte was checked. Raises UserError with the first fault."""
    with contextlib.ExitStack() as opened:
        with pack_faults(path):
            archive = opened.enter_context(zipfile.ZipFile(path))
            manifest = _read_manifest(archive, path)
            for part in manifest.parts:
                _check_place(part)
                _checked(archive, part)
            pack = OpenPack(path, archive, manifest, tuple(_artefacts(archive, manifest)))
            _check_rows(pack)
            _check_records(pack)
        yield pack


@contextlib.contextmanager
def listed_pack(path: Path) -> Iterator[OpenPack]:
    """Yield a pack of which only the manifest was read. Raises UserError if the file is not a pack."""
    with pack_faults(path), zipfile.ZipFile(path) as archive:
        yield OpenPack(path, archive, _read_manifest(archive, path), ())


@contextlib.contextmanager
def pack_faults(path: Path) -> Iterator[None]:
    """Turn every fault of a pack into one line."""
    refuse_device(path)
    if path.is_fifo():  # opening it would wait for ever
        raise UserError(f"{path} is a pipe, not a file: write the pack to a file first")
    try:
        yield
    except UserError as error:
        raise UserError(f"{path} is not a pack that can be used: ", error, "; nothing was written") from None
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError, OSError) as error:
        reason = str(error)[:100] or type(error).__name__
        raise UserError(f"{path} is not a pack, or it is damaged ({reason}); nothing was written") from None


def _read_manifest(archive: zipfile.ZipFile, path: Path) -> PackManifest:
    infos = archive.infolist()
    if len(infos) > MAX_PARTS:
        raise UserError(f"it has {len(infos):,} files, and at most {MAX_PARTS:,} are read")
    seen: set[str] = set()
    for info in infos:
        _check_info(info, seen)
    if sum(info.compress_size for info in infos) > path.stat().st_size:
        raise UserError("its files overlap")
    size = sum(info.file_size for info in infos)
    if size > (free := shutil.disk_usage(path.parent).free + path.stat().st_size):
        raise UserError(f"it would take {size:,} bytes, and only {free:,} are free")
    sizes = {info.filename: info.file_size for info in infos}
    if MANIFEST_NAME not in sizes or sizes[MANIFEST_NAME] > MAX_MANIFEST:
        raise UserError("it has no manifest.json of a pack")
    with archive.open(MANIFEST_NAME) as file:
        manifest = _parsed(file.read(MAX_MANIFEST))
    listed = {part.path: part.size for part in manifest.parts}
    del sizes[MANIFEST_NAME]
    if len(listed) != len(manifest.parts) or listed != sizes:
        raise UserError("its files are not those of its manifest")
    return manifest


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


def _check_info(info: zipfile.ZipInfo, seen: set[str]) -> None:
    """Raise UserError for a name that could be written elsewhere, a link, a file twice, or a bomb."""
    name = info.filename
    shown = ascii(name)[:80]
    parts = name.split("/")
    odd = any(not sign.isprintable() or sign in '\\:*?"<>|' for sign in name)
    if odd or name != info.orig_filename or any(part in ("", ".", "..") for part in parts) or len(name) > 1000:
        raise UserError(f"{shown} is not a plain name of a file")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise UserError(f"{shown} is a link or another special file")
    if info.flag_bits & 0x1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UserError(f"{shown} is encrypted, or packed in a way that is not read")
    folded = unicodedata.normalize("NFC", name).casefold()
    if folded in seen:
        raise UserError(f"{shown} is in it twice")
    seen.add(folded)
    if info.file_size > max(1 << 20, MAX_RATIO * info.compress_size):
        raise UserError(f"{shown} would become {info.file_size:,} bytes from {info.compress_size:,}")


def _check_place(part: PackPart) -> None:
    """Raise UserError for a part that belongs nowhere, or that is not of its kind."""
    path, kind = part.path, part.kind
    if match := _ARTEFACT.fullmatch(path):
        of_runs = match["kind"] in ("run", "recall")
        sound = (
            match["kind"] in PACKED_KINDS and match["key"] == part.key and kind == ("runs" if of_runs else "vectors")
        )
    elif match := _ROWS.fullmatch(path):
        sound = match["folder"] in FORMATS and kind == match["kind"] == KIND_OF_ROWS.get(match["folder"], kind)
        sound = sound and (
            match["folder"] != "journal" or (match["name"] == "chat" and kind in ("texts", "rerankings", "answers"))
        )
    elif _DATA.fullmatch(path):
        sound = kind == "corpus"
    elif _GENERATIONS.fullmatch(path):
        sound = kind == "texts"
    else:
        sound = _RESULT.fullmatch(path) is not None and kind in ("records", "runs", "texts", "answers", "corpus")
    if not sound:
        raise UserError(f"{ascii(path)[:80]} is not a part of the kind {kind}")


def _checked(archive: zipfile.ZipFile, part: PackPart, target: IO[bytes] | None = None) -> None:
    """Read a part, and write it if there is a target. Raises UserError if its size or its hash is wrong."""
    sha, size = hashlib.sha256(), 0
    with archive.open(part.path) as file:
        while block := file.read(1 << 20):
            size += len(block)
            if size > part.size:
                break
            sha.update(block)
            if target is not None:
                target.write(block)
    if size != part.size or sha.hexdigest() != part.sha256:
        raise UserError(f"{part.path} has other bytes than its manifest says")


def _artefacts(archive: zipfile.ZipFile, manifest: PackManifest) -> Iterator[PackedArtefact]:
    found: dict[tuple[str, str], dict[str, PackPart]] = {}
    for part in manifest.parts:
        if match := _ARTEFACT.fullmatch(part.path):
            found.setdefault((match["kind"], match["key"]), {})[match["file"]] = part
    widths: dict[str, int] = {}
    for (kind, key), parts in found.items():
        own = parts.pop(MANIFEST, None)
        try:
            body = json.loads(archive.read(own.path)) if own else {}
            files, meta = dict(body["files"]), dict(body["meta"])
            stated = {name: (facts["size"], facts["sha256"]) for name, facts in files.items()}
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UserError(f"the manifest of {kind} {key[:8]} is missing or damaged") from None
        if stated != {name: (part.size, part.sha256) for name, part in parts.items()}:
            raise UserError(f"the files of {kind} {key[:8]} are not those of its manifest")
        if not is_artefact(kind, meta, parts):
            raise UserError(f"{kind} {key[:8]} does not have the files and the facts of its kind")
        arrays = {name: _array(archive, part) for name, part in parts.items()}
        if fault := arrays_fault(kind, arrays):
            raise UserError(f"{kind} {key[:8]} cannot be used: ", fault)
        if kind == "vectors":
            width = arrays["vectors.npy"].shape[1]
            if widths.setdefault(str(meta.get("encoder", key)), width) != width:
                raise UserError(f"{kind} {key[:8]} has vectors of another length than others of its model")
        yield PackedArtefact(kind, key, parts, meta, own.datasets if own else ())


def _array(archive: zipfile.ZipFile, part: PackPart) -> PackedArray:
    """Return an array of a pack. Raises UserError if the file is not an array of plain numbers of exactly this size."""
    with archive.open(part.path) as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, by_columns, dtype = read(file)
        except (ValueError, SyntaxError, OSError, TypeError):
            raise UserError(f"{part.path} is not an array") from None
        count = int(np.prod(shape, dtype=object)) if shape else 1
        start = file.tell()
        plain = not (dtype.hasobject or dtype.names or dtype.subdtype)
        if not plain or not dtype.itemsize or part.size != start + count * dtype.itemsize:
            raise UserError(f"{part.path} is not an array of plain numbers")

    def blocks() -> Iterator[npt.NDArray[Any]]:
        with archive.open(part.path) as file:
            file.read(start)
            while block := file.read(BLOCK_VALUES * dtype.itemsize):
                yield np.frombuffer(block, dtype)

    return PackedArray(shape, dtype, "F" if by_columns else "C", blocks)


def _check_rows(pack: OpenPack) -> None:
    for part, _ in pack.rows():
        for _ in pack.lines(part):
            pass


def _check_records(pack: OpenPack) -> None:
    """Raise UserError if a record is damaged, does not have its own key, or names other files than its own."""
    hashes = {path.as_posix(): part.sha256 for part, path in pack.results()}
    keys: set[str] = set()
    runs: list[tuple[str, str, Mapping[str, Any]]] = []
    for part, path in pack.results():
        if part.kind != "records":
            continue
        record = Record.parse(pack.read(part), path)
        if fault := next(record_faults(record), ""):
            raise UserError(f"{part.path}: ", fault)
        if not may_be_record(path) or record.key[:10] != path.stem[-10:] or record.key != part.key:
            raise UserError(f"{part.path} does not have the name of its record")
        if record.key != record_key(record.settings, record.dataset.fingerprint):
            raise UserError(f"{part.path}: its key is not that of its settings")
        for facts in filter(None, (record.run, record.traces, record.generated)):
            if hashes.get((path.parent / facts.file).as_posix(), facts.sha256) != facts.sha256:
                raise UserError(f"{part.path}: {facts.file} is not the file of this record")
        keys.add(record.key)
        runs.append((record.display_name, record.dataset.name, record.settings))
    if fault := repeat_fault(runs):
        raise UserError(fault)
    keys |= set(_checked_answers(pack, hashes, keys))
    if keys != {record.key for record in pack.manifest.records}:
        raise UserError("its records are not those of its manifest")
    if stray := [part.path for part, _ in pack.results() if part.key not in keys]:
        raise UserError(f"{stray[0]} belongs to no record")


def _checked_answers(pack: OpenPack, hashes: Mapping[str, str], rankings: Collection[str]) -> Iterator[str]:
    """Yield the keys of answer records. Raises UserError if one is damaged, or if what it read is not in the pack."""
    for part, path in pack.results():
        if part.kind != "answers" or not part.is_record:
            continue
        record = AnswerRecord.parse(pack.read(part), path)
        if fault := next(answer_faults(record), ""):
            raise UserError(f"{part.path}: ", fault)
        if record.key != part.key or not path.name.endswith(f"-{record.key[:10]}{SUFFIX}"):
            raise UserError(f"{part.path} does not have the name of its record")
        if record.key != answer_key(record.settings, record.dataset.fingerprint):
            raise UserError(f"{part.path}: its key is not that of its settings")
        if record.settings.get("retrieval") not in rankings:
            raise UserError(f"{part.path}: the record that was read is not in the pack")
        file = path.parent / record.answers.file if record.answers else answers_path(path)
        if record.answers is None or hashes.get(file.as_posix()) != record.answers.sha256:
            raise UserError(f"{part.path}: {file.name} is not the file of this record")
        written = record.conversations
        if written and hashes.get((path.parent / written.file).as_posix(), written.sha256) != written.sha256:
            raise UserError(f"{part.path}: {written.file} is not the file of this record")
        yield record.key
