"""Write a pack: records with the files beside them, and what they read from the store, as one zip file.

Each system runs once more on the store, and all that it reads is noted. Nothing is asked, encoded or downloaded, and
the run must come out with the bytes of the record's run file. So the same command reads the same from a store that has
only the pack. The bytes of a pack depend on its content alone: names are sorted, and no file has a date.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.data.dataset_word import GivenData
from r2med.data.loading import load_dataset
from r2med.evaluation.records.answer_facts import answers_path
from r2med.evaluation.records.collection import collect, record_files, sound_records
from r2med.evaluation.records.local_datasets import given_places
from r2med.evaluation.records.public_values import public_value, refuse_secrets
from r2med.evaluation.records.record import record_key
from r2med.evaluation.records.record_paths import files_beside, slug
from r2med.evaluation.records.repeats import repeat_fault, repeat_setting, setting_difference
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.evaluation.running.evaluation import evaluated
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import __version__
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import json_line, scratch_beside, sha256
from r2med.foundation.store.memo import memo_rows
from r2med.foundation.store.reads import Reads, noted_reads
from r2med.publication.packs.pack_file import KINDS, MANIFEST_NAME, META_NAME, PackedFile, PackedRecord, PackManifest
from r2med.systems.system import System

log = logging.getLogger("r2med")

_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class _PartSource:
    """A file of a pack before it is written: its bytes, or the file that has them."""

    path: str
    content: bytes | Path
    datasets: tuple[str, ...]

    def listed(self) -> PackedFile:
        """Return its line in the manifest."""
        if isinstance(self.content, Path):
            size, sha = self.content.stat().st_size, sha256(self.content)
        else:
            size, sha = len(self.content), hashlib.sha256(self.content).hexdigest()
        return PackedFile(path=self.path, size=size, sha256=sha, datasets=self.datasets)


def write_pack(
    sources: Sequence[str | Path],
    file: Path,
    runtime: Runtime,
    *,
    results: Path,
    data: Sequence[GivenData] = (),
    vectors: bool = True,
) -> PackManifest:
    """Write records and what they read from the store as one file."""
    collection = collect(sources, results)
    _check_collection(collection)
    answers = _answers_of(collection)
    datasets = _find_datasets(collection, data, runtime)
    reads: dict[str, Reads] = {}
    for name, dataset in datasets.items():
        with noted_reads(KINDS, search_again=vectors) as reads[name]:
            for kept in collection.runs_of_all:
                if kept.record.dataset.name == name:
                    _run_again(kept, dataset, runtime)
    with scratch_beside(file.absolute()) as scratch:
        found = [*_results(collection, answers), *_artefacts(reads, runtime.store, vectors)]
        found += _rows(reads, vectors)
        parts = {part.path: part for part in found}
        manifest = PackManifest(
            r2med=__version__,
            records=tuple(_packed_records(collection, answers)),
            files=tuple(parts[path].listed() for path in sorted(parts)),
        )
        _refuse_secrets(manifest, parts)
        _write(manifest, parts, scratch / "pack.zip")
        file.parent.mkdir(parents=True, exist_ok=True)
        (scratch / "pack.zip").chmod(0o600)  # answers and vectors may reveal texts: who gets it is for you to say
        (scratch / "pack.zip").replace(file)
    return manifest


def _check_collection(collection: RecordCollection) -> None:
    """Raise UserError if records do not belong together, or if a file beside one is missing or was changed."""
    for kept in collection.runs_of_all:
        if kept.record.apart:
            raise UserError(f"{kept.path} does not belong among other systems: {kept.record.apart}")
        kept.check_files()
    runs = [
        (kept.record.display_name, kept.record.dataset.name, kept.record.settings) for kept in collection.runs_of_all
    ]
    if fault := repeat_fault(runs):
        raise UserError(fault)


def _answers_of(collection: RecordCollection) -> list[StoredRecord]:
    """Return the answer records beside the records of a collection that were read from them."""
    keys = {kept.record.key for kept in collection.runs_of_all}
    files = {file for kept in collection.runs_of_all for file in record_files(kept.path.parent, "answers")}
    records, faults = sound_records(sorted(files), "answers")
    for fault, _ in faults:
        log.warning("%s: it is left out", fault)
    answers = [each for each in records if each.record.settings.get("retrieval") in keys]
    for each in answers:
        each.given()  # raises UserError if the answers are missing or were changed
    return answers


def _find_datasets(collection: RecordCollection, data: Sequence[GivenData], runtime: Runtime) -> dict[str, Dataset]:
    """Return the datasets of records by name. Raises UserError if one is not here, or has changed since."""
    places = given_places(data, runtime.store)
    found: dict[str, Dataset] = {}
    for name in collection.datasets:
        try:
            place = places.get(name, name)
            found[name] = place if isinstance(place, Dataset) else load_dataset(place, runtime.store)
        except UserError as error:
            raise UserError(f"{name}: {error} (name the folder of your own data: r2med pack --data FOLDER)") from None
    for kept in collection.runs_of_all:
        name = kept.record.dataset.name
        if kept.record.dataset.fingerprint != found[name].fingerprint:
            raise UserError(f"{kept.path}: {name} has changed since this record was made: run it again")
    return found


def _run_again(kept: StoredRecord, dataset: Dataset, runtime: Runtime) -> None:
    """Run the system of a record again. Raises UserError if the store does not give the same run."""
    record = kept.record
    opened = runtime.with_settings(**_model_settings(record.settings, runtime), repeat=record.repeat)
    try:
        system = System.parse(record.system, opened)
        expansion = system.expand(dataset)
        settings = {**system.key(dataset, expansion), "k": record.settings["k"], **repeat_setting(system.repeat)}
        if record_key(settings, dataset.fingerprint) != record.key:
            raise UserError(
                f"{setting_difference(record.settings, settings)} in the record: give the flags of its r2med run"
            )
        with tempfile.TemporaryDirectory(prefix="r2med-") as folder:
            made = evaluated(system, dataset, Path(folder), record.settings["k"], expansion).record
        if record.run is None or made.run is None or made.run.sha256 != record.run.sha256:
            raise UserError("this store gives another run than that of the record")
    except UserError as error:
        again = shlex.join(["r2med", "run", record.system, *(["--name", record.name] if record.name else [])])
        where = f"{kept.path}: {record.system} on {record.dataset.name}: "
        raise UserError(f"{where}{error}; run it again ({again}), then pack it") from None


def _model_settings(settings: Mapping[str, Any], runtime: Runtime) -> dict[str, str]:
    """Return the precision and the library of a record's models as fields of Setup, unless the user gave others."""
    backend = next(iter({*values_of(settings, "backend")} - {"openai", "local", "scripted"}), "torch")
    if backend != "torch":
        return {"backend": backend} if runtime.setup.backend == "torch" else {}
    dtypes = {*values_of(settings, "dtype")}
    return {"dtype": dtypes.pop()} if len(dtypes) == 1 and runtime.setup.dtype == "auto" else {}


def values_of(settings: Any, name: str) -> Iterator[str]:
    """Yield every value of this name in nested settings."""
    if isinstance(settings, Mapping):
        if isinstance(settings.get(name), str):
            yield settings[name]
        settings = list(settings.values())
    if isinstance(settings, list | tuple):
        for part in settings:
            yield from values_of(part, name)


def _results(collection: RecordCollection, answers: Sequence[StoredRecord]) -> Iterator[_PartSource]:
    """Yield records and the files beside them. Conversations of agents stay: they quote the documents they read."""
    for kept in collection.runs_of_all:
        record, path = kept.record, kept.path
        _refuse_paths(path, record.system, {"system": record.system, "settings": record.settings}, "run")
        files = files_beside(path)
        beside = [kept.run_file or files.run, *([files.generated] if record.generated else [])]
        for file in (path, *(file for file in beside if file.is_file())):
            yield _beside(file, record.dataset.name)
    for each in answers:
        record, path = each.record, each.path
        body = record.model_dump(mode="json")
        stated = {name: body[name] for name in ("system", "settings")}
        stated |= {name: body["answers"][name] for name in ("reader", "notices", "judge")}
        _refuse_paths(path, record.display_name, stated, "answer")
        for file in (path, answers_path(path)):
            yield _beside(file, record.dataset.name)


def _beside(file: Path, dataset: str) -> _PartSource:
    return _PartSource("/".join(["results", *map(slug, dataset.split("/")), file.name]), file, (dataset,))


def _refuse_paths(path: Path, name: str, stated: Mapping[str, Any], command: str) -> None:
    """Raise UserError if a record's names or settings contain a path or an address of this machine."""
    if public_value(stated) != stated:
        begin = f"{path}: {name} names a path or an address of this machine, which a pack must not: "
        if public_value(name) != name and "folds:" in name:
            again = f"{command} it again from the folder in which its models are, as {public_value(name)}"
            raise UserError(f"{begin}{again}")
        raise UserError(
            f"{begin}give the model a name with model_paths (--model-path NAME=PATH), and {command} it again",
        )


def _artefacts(reads: Mapping[str, Reads], store: Store, vectors: bool) -> Iterator[_PartSource]:
    """Yield the arrays and the metadata of what was read, without names of this machine."""
    users: dict[tuple[str, str], list[str]] = {}
    for name, read in reads.items():
        for place in read.artefacts:
            users.setdefault(place, []).append(name)
    for (kind, key), datasets in sorted(users.items()):
        if kind not in KINDS or (kind != "run" and not vectors):
            continue
        artefact = store.get(kind, key)
        assert artefact is not None, "it was just read"
        meta = {**artefact.meta, "about": {"model": public_value(artefact.meta.get("about", {}).get("model", ""))}}
        body = json.dumps(meta, sort_keys=True).encode()
        yield _PartSource(f"artefacts/{kind}/{key}/{META_NAME}", body, tuple(datasets))
        for file in sorted(artefact.path.glob("*.npy")):
            yield _PartSource(f"artefacts/{kind}/{key}/{file.name}", file, tuple(datasets))


def _rows(reads: Mapping[str, Reads], vectors: bool) -> Iterator[_PartSource]:
    """Yield the rows that were read, a file for each table and dataset."""
    for dataset, read in reads.items():
        for file, keys in read.rows.items():
            folder = file.parent.name
            if folder == "remote":
                raise UserError(f"a system read documents of a search server on {dataset}, which a pack cannot hold")
            if folder == "api" and not vectors:
                continue
            with memo_rows(file) as table:
                values = table.get(sorted(keys))
            lines = (
                {"key": key.hex(), "value": base64.b64encode(_public_row(folder, values[key])).decode()}
                for key in sorted(values)
            )
            path = f"rows/{folder}/{file.stem}/{digest(dataset)[:12]}.jsonl"
            yield _PartSource(path, b"".join(map(json_line, lines)), (dataset,))


def _public_row(folder: str, value: bytes) -> bytes:
    """Return a row without the name of the process that asked an LLM, which contains that of the machine."""
    if folder != "journal":
        return value
    row = json.loads(value)
    row.pop("process", None)
    return json.dumps({**row, "model": public_value(row["model"])}).encode("ascii")


def _packed_records(collection: RecordCollection, answers: Sequence[StoredRecord]) -> Iterator[PackedRecord]:
    records = [kept.record for kept in (*collection.runs_of_all, *answers)]
    for record in sorted(records, key=lambda each: (each.dataset.name, each.display_name, each.repeat)):
        yield PackedRecord(system=record.display_name, dataset=record.dataset.name)


def _refuse_secrets(manifest: PackManifest, parts: Mapping[str, _PartSource]) -> None:
    """Raise UserError if a text of the pack contains a secret or a path of this machine."""
    refuse_secrets(manifest.model_dump_json(), "pack")
    for part in parts.values():
        if not part.path.endswith((".npy", ".gz")):
            content = part.content.read_bytes() if isinstance(part.content, Path) else part.content
            refuse_secrets(content.decode("utf-8", "replace"), "pack")


def _write(manifest: PackManifest, parts: Mapping[str, _PartSource], path: Path) -> None:
    body = manifest.model_dump_json(indent=1).encode() + b"\n"
    with zipfile.ZipFile(path, "x", allowZip64=True) as archive:
        _write_part(archive, _PartSource(MANIFEST_NAME, body, ()))
        for each in manifest.files:
            _write_part(archive, parts[each.path])


def _write_part(archive: zipfile.ZipFile, part: _PartSource) -> None:
    info = zipfile.ZipInfo(part.path, _DATE)
    # Vectors and gzipped runs do not become smaller.
    info.compress_type = zipfile.ZIP_STORED if part.path.endswith((".npy", ".gz")) else zipfile.ZIP_DEFLATED
    info.external_attr = 0o100644 << 16
    info.create_system = 3  # the same bytes on every platform
    if isinstance(part.content, bytes):
        archive.writestr(info, part.content)
        return
    info.file_size = part.content.stat().st_size
    with archive.open(info, "w") as target, part.content.open("rb") as file:
        shutil.copyfileobj(file, target, 1 << 20)
