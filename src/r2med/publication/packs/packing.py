"""Write a pack: records, and what they need from the store, as one zip file with a manifest. The bytes are determined
by the content: names are sorted, and no part has a date."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.data.given_data import GivenData
from r2med.data.loading import load_new
from r2med.evaluation.records.answer_record import answers_path
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.public_values import public_value, refuse_secrets
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.repeats import repeat_fault
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.running.evaluation import generated_path, run_path, slug, traces_path
from r2med.evaluation.running.ir_metadata import metadata_path
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.core.version import __version__
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store, digest
from r2med.foundation.store.artefacts import is_content
from r2med.foundation.store.files import scratch_beside, sha256
from r2med.foundation.store.manifest import MANIFEST, read_manifest, seal
from r2med.publication.bridges.data_export import write_layout
from r2med.publication.packs.gathering import Needed, command_of, find_datasets, flags_of, needed
from r2med.publication.packs.pack_manifest import (
    KIND_OF_ROWS,
    MANIFEST_NAME,
    PackedDataset,
    PackedRecord,
    PackManifest,
    PackPart,
    PartKind,
    saved_values,
)
from r2med.publication.packs.packed_answers import (
    PackedAnswers,
    answer_command,
    answer_reads,
    answers_of,
    form_of,
    given_nuggets,
    nuggets_path,
)
from r2med.publication.packs.packed_rows import row_lines
from r2med.systems.retrieve.stored_search import remembered_latencies
from r2med.systems.retrieve.vectors.vector_shard import open_shard

_DATE = (1980, 1, 1, 0, 0, 0)
_FREE = re.compile(r"(cc0|cc-by|pddl|odc-by|odbl|mit\b|apache-2|bsd|public domain)", re.IGNORECASE)
"""Licences that allow everyone to pass texts on unchanged."""
_TEXT_ENDINGS = (".json", ".jsonl", ".yml", ".toml", ".md")
_OF_DATASETS = ("/corpus.jsonl", "/query.jsonl", "/qrels.jsonl")
_NAME = re.compile(r"[\w.+=@%-]{1,180}")


@dataclass(frozen=True)
class _PartSource:
    """A file of a pack before it is written: its bytes, or the file that has them."""

    path: str
    kind: PartKind
    content: bytes | Path
    key: str = ""
    datasets: tuple[str, ...] = ()

    def part(self, licences: Mapping[str, str]) -> PackPart:
        if isinstance(self.content, Path):
            size, sha = self.content.stat().st_size, sha256(self.content)
        else:
            size, sha = len(self.content), hashlib.sha256(self.content).hexdigest()
        stated = {licences[name] for name in self.datasets}
        return PackPart(
            path=self.path,
            kind=self.kind,
            key=self.key,
            size=size,
            sha256=sha,
            datasets=self.datasets,
            licence="" if "" in stated else ", ".join(sorted(stated)),
        )


def write_pack(
    sources: Sequence[str | Path],
    file: Path,
    kinds: Sequence[str],
    runtime: Runtime,
    *,
    results: Path,
    data: Sequence[GivenData] = (),
    corpus_licence: str = "",
    nuggets: Path | str = "",
) -> PackManifest:
    """Write records and what they need from the store as one file. `kinds` are checked by `chosen_kinds`."""
    collection = collect(sources, results)
    for kept in collection.runs_of_all:
        if kept.record.apart:
            raise UserError(f"{kept.path} does not belong among other systems: {kept.record.apart}")
        kept.check_files()
    runs = [
        (kept.record.display_name, kept.record.dataset.name, kept.record.settings) for kept in collection.runs_of_all
    ]
    if fault := repeat_fault(runs):
        raise UserError(fault)
    answers = answers_of(collection) if "answers" in kinds else []
    datasets = find_datasets(collection, data, runtime)
    licences = {name: _licence(dataset, corpus_licence) for name, dataset in datasets.items()}
    if "corpus" in kinds:
        _check_licences(licences)
    read = needed(collection, datasets, runtime, vectors="vectors" in kinds)
    for each in answers:
        need = read[each.retrieval.record.dataset.name]
        need.add(answer_reads(each, need.dataset, runtime, nuggets), need.answers)
    with scratch_beside(file.absolute()) as scratch:
        scratch.mkdir()
        said = _answer_files(answers, datasets, nuggets)
        found = [*_records(collection, kinds), *said, *_stored(read, kinds, runtime.store, scratch)]
        if "corpus" in kinds:
            found += _corpora(datasets, scratch, runtime.store)
        by_path = {source.path: source for source in found}
        manifest = PackManifest(
            r2med=__version__,
            records=(*_packed_records(collection, runtime), *_packed_answers(answers, datasets, runtime, nuggets)),
            datasets=tuple(_packed_dataset(name, dataset, licences[name]) for name, dataset in datasets.items()),
            saves=saved_values(_saved(collection, answers)),
            parts=tuple(by_path[path].part(licences) for path in sorted(by_path)),
        )
        _check_public(manifest, by_path.values())
        _write(manifest, by_path, scratch / "pack.zip")
        file.parent.mkdir(parents=True, exist_ok=True)
        (scratch / "pack.zip").chmod(0o600)  # answers and vectors may reveal texts: who gets it is for you to say
        (scratch / "pack.zip").replace(file)
    return manifest


def _licence(dataset: Dataset, given: str) -> str:
    return (dataset.card.licence if dataset.card else "") or given


def _check_licences(licences: Mapping[str, str]) -> None:
    """Raise UserError if a licence does not allow the documents to be passed on."""
    for name, licence in licences.items():
        if not licence:
            raise UserError(
                f"the licence of {name} is not known: pack it without corpus, or say under which licence you "
                "may pass on its documents: r2med pack --corpus-licence NAME"
            )
        if not _FREE.match(licence.strip()):
            raise UserError(f"the licence of {name}, {licence}, may not allow others to have it: pack without corpus")


def _records(collection: RecordCollection, kinds: Sequence[str]) -> Iterator[_PartSource]:
    """Yield the records and the files beside them, with the paths that they have in a folder of results."""
    for kept in collection.runs_of_all:
        record, path = kept.record, kept.path
        _refuse_paths(path, record.system, {"system": record.system, "settings": record.settings}, "run")
        beside: list[tuple[str, Path]] = [("records", path)]
        if "runs" in kinds and record.run:
            beside += [("runs", file) for file in (run_path(path), metadata_path(run_path(path))) if file.is_file()]
        if "texts" in kinds and record.generated:
            beside.append(("texts", generated_path(path)))
        if "corpus" in kinds and record.traces:  # a conversation quotes the documents that the agent read
            beside.append(("corpus", traces_path(path)))
        name = Record.read(path).dataset.name
        folder = "/".join(["results", *map(slug, name.split("/"))])
        for kind, file in beside:
            yield _PartSource(f"{folder}/{_safe(file.name)}", kind, file, record.key, (record.dataset.name,))  # type: ignore[arg-type]


def _answer_files(
    answers: Sequence[PackedAnswers], datasets: Mapping[str, Dataset], nuggets: Path | str
) -> Iterator[_PartSource]:
    """Yield the answer records, the files of their answers and their nuggets, beside the records that were read."""
    for each in answers:
        record = each.record
        body = record.model_dump(mode="json")
        stated = {name: body[name] for name in ("system", "reader", "settings", "notices", "judge")}
        _refuse_paths(each.path, record.name, stated, "answer")
        folder = "/".join(["results", *map(slug, Record.read(each.retrieval.path).dataset.name.split("/"))])
        of_dataset = (each.retrieval.record.dataset.name,)
        for file in (each.path, answers_path(each.path)):
            yield _PartSource(f"{folder}/{_safe(file.name)}", "answers", file, record.key, of_dataset)
        if given := given_nuggets(record, datasets[of_dataset[0]], nuggets):
            name = _safe(nuggets_path(each.path).name)
            yield _PartSource(f"{folder}/{name}", "answers", Path(given), record.key, of_dataset)


def _refuse_paths(path: Path, name: str, stated: Mapping[str, Any], command: str) -> None:
    """Raise UserError if a record's names or settings contain a path or an address of this machine."""
    if public_value(stated) != stated:
        begin = f"{path}: {name} names a path or an address of this machine, which a pack must not: "
        if public_value(name) != name and "folds:" in name:
            again = f"{command} it again from the folder in which its models are, as {public_value(name)}"
            raise UserError(f"{begin}{again}")
        raise UserError(
            f"{begin}give the model a name with ",
            Setting("Setup", model_paths={"NAME": "PATH"}),
            f", and {command} it again",
        )


def _stored(read: Mapping[str, Needed], kinds: Sequence[str], store: Store, scratch: Path) -> Iterator[_PartSource]:
    """Yield artefacts and rows of the store."""
    users: dict[tuple[str, str], list[str]] = {}
    for name, need in read.items():
        for artefact in need.artefacts:
            users.setdefault(artefact, []).append(name)
        yield from _rows(name, need, kinds)
        for path, (key, content) in need.generations.items() if "texts" in kinds else ():
            inside = "/".join(map(_safe, path.split("/")))
            yield _PartSource(f"generations/{inside}", "texts", content, key, (name,))
    for (kind, key), names in sorted(users.items()):
        wanted: PartKind = "runs" if kind in ("run", "recall") else "vectors"
        if wanted in kinds:
            yield from _artefact(_whole(store, kind, key, scratch), wanted, tuple(names), store)


def _whole(store: Store, kind: str, key: str, scratch: Path) -> Path:
    """Return the folder of an artefact. Vectors that lie in those of other corpora are gathered, without the others."""
    folder = store.root / kind / key
    if "sources" not in read_manifest(folder)["meta"] or (shard := open_shard(store, kind, key)) is None:
        return folder
    gathered = scratch / kind / key
    gathered.mkdir(parents=True)
    seal(gathered, shard.write_whole(gathered))
    return gathered


def _artefact(folder: Path, part: PartKind, datasets: tuple[str, ...], store: Store) -> Iterator[_PartSource]:
    kind, key = folder.parent.name, folder.name
    manifest = json.loads((folder / MANIFEST).read_bytes())
    meta = manifest["meta"]
    # A part of a fusion may have been timed after its run was stored.
    if kind == "run" and not meta["cost"].get("latencies") and (seconds := remembered_latencies(store, key)):
        meta = {**meta, "cost": {**meta["cost"], "latencies": list(seconds)}}
    if "about" in meta:
        meta = {**meta, "about": {**public_value(meta["about"]), "dataset": datasets[0]}}  # not a label with a folder
    body = json.dumps({"files": manifest["files"], "meta": meta}, sort_keys=True).encode()
    yield _PartSource(f"artefacts/{kind}/{key}/{MANIFEST}", part, body, key, datasets)
    for name in sorted(filter(is_content, manifest["files"])):
        yield _PartSource(f"artefacts/{kind}/{key}/{name}", part, folder / name, key, datasets)


def _rows(dataset: str, need: Needed, kinds: Sequence[str]) -> Iterator[_PartSource]:
    """Yield the rows of each file. Answers of LLMs are texts of expansions, rerankings or answers of readers."""
    by_kind: dict[tuple[PartKind, Path], set[bytes]] = {}
    of_llms: PartKind
    for of_llms, rows in (("texts", need.texts), ("rerankings", need.scores), ("answers", need.answers)):
        for file, keys in rows.items():
            by_kind.setdefault((KIND_OF_ROWS.get(file.parent.name, of_llms), file), set()).update(keys)
    for (kind, file), keys in sorted(by_kind.items()):
        if kind in kinds:
            path = f"rows/{kind}/{file.parent.name}/{_safe(file.stem)}/{digest(dataset)[:12]}.jsonl"
            yield _PartSource(path, kind, row_lines(file, keys), datasets=(dataset,))


def _corpora(datasets: Mapping[str, Dataset], scratch: Path, store: Store) -> Iterator[_PartSource]:
    """Yield the files of datasets in the benchmark's layout. Read back, they must give the same fingerprint.

    Raises UserError if two datasets would share a folder, which on some computers has no capital letters.
    """
    for folder_name, count in Counter(slug(name).casefold() for name in datasets).items():
        if count > 1:
            both = " and ".join(name for name in datasets if slug(name).casefold() == folder_name)
            raise UserError(f"{both} would share a folder of the pack: pack one of them at a time")
    for name, dataset in datasets.items():
        folder = scratch / "data" / slug(name)
        write_layout(dataset, "hub", folder)
        card = dataset.folder / "card.toml" if dataset.folder else None
        if card is not None and card.is_file():
            shutil.copyfile(card, folder / "card.toml")
        if load_new(folder, name, dataset.own_folder, store).fingerprint != dataset.fingerprint:
            raise UserError(f"{name} cannot be written so that it reads back unchanged: pack it without corpus")
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            inside = "/".join(map(_safe, file.relative_to(folder).parts))
            yield _PartSource(f"data/{slug(name)}/{inside}", "corpus", file, dataset.fingerprint, (name,))


def _safe(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UserError(f"the file name {name[:100]!r} cannot be part of a pack")
    return name


def _packed_records(collection: RecordCollection, runtime: Runtime) -> Iterator[PackedRecord]:
    ordered = sorted(
        collection.runs_of_all,
        key=lambda each: (each.record.dataset.name, each.record.display_name, each.record.repeat),
    )
    runs = Counter((kept.record.display_name, kept.record.dataset.name) for kept in collection.runs_of_all)
    for kept in ordered:
        record = kept.record
        yield PackedRecord(
            system=record.system,
            dataset=record.dataset.name,
            key=record.key,
            command=command_of(record, *flags_of(runtime), repeats=runs[record.display_name, record.dataset.name]),
        )


def _packed_answers(
    answers: Sequence[PackedAnswers], datasets: Mapping[str, Dataset], runtime: Runtime, nuggets: Path | str
) -> Iterator[PackedRecord]:
    for each in sorted(answers, key=lambda each: (each.record.dataset.name, each.record.name, each.record.key)):
        name = each.retrieval.record.dataset.name
        given = given_nuggets(each.record, datasets[name], nuggets)
        beside = Path("results", *map(slug, name.split("/")), nuggets_path(each.path).name) if given else ""
        command = answer_command(each.record, form_of(datasets[name]), *flags_of(runtime), nuggets=beside)
        yield PackedRecord(system=each.record.name, dataset=name, key=each.record.key, command=command)


def _packed_dataset(name: str, dataset: Dataset, licence: str) -> PackedDataset:
    return PackedDataset(name=name, fingerprint=dataset.fingerprint, licence=licence, source=dataset.source)


def _saved(collection: RecordCollection, answers: Sequence[PackedAnswers]) -> Cost:
    """Return the cost of everything that the records needed. What two records of systems share counts once."""
    shared: dict[object, Cost] = {}
    for kept in collection.runs_of_all:
        dataset = kept.record.dataset
        before: list[str | int] = []
        for stage in kept.record.stages:
            before += [stage.name, *([kept.record.repeat] if stage.can_vary else [])]
            shared[dataset.fingerprint, tuple(before)] = stage.cost
            shared[dataset.corpus_fingerprint, stage.name] = stage.prepared
    asking = [cost for each in answers for part, cost in each.record.costs.items() if part != "retrieval"]
    return total([*shared.values(), *asking])


def _check_public(manifest: PackManifest, sources: Any) -> None:
    """Raise UserError if a text of the pack contains a secret or a path of this machine."""
    refuse_secrets(manifest.model_dump_json(), "pack")
    for source in sources:
        if source.path.endswith(_TEXT_ENDINGS) and not source.path.endswith(_OF_DATASETS):
            content = source.content.read_bytes() if isinstance(source.content, Path) else source.content
            refuse_secrets(content.decode("utf-8", "replace"), "pack")


def _write(manifest: PackManifest, sources: Mapping[str, _PartSource], path: Path) -> None:
    body = manifest.model_dump_json(indent=1).encode() + b"\n"
    with zipfile.ZipFile(path, "x", allowZip64=True) as archive:
        _write_part(archive, MANIFEST_NAME, body)
        for part in manifest.parts:
            _write_part(archive, part.path, sources[part.path].content)


def _write_part(archive: zipfile.ZipFile, name: str, content: bytes | Path) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    # Vectors and gzipped runs do not become smaller.
    info.compress_type = zipfile.ZIP_DEFLATED if name.endswith(_TEXT_ENDINGS) else zipfile.ZIP_STORED
    info.external_attr = 0o100644 << 16
    info.create_system = 3  # the same bytes on every platform
    info.file_size = content.stat().st_size if isinstance(content, Path) else len(content)
    with archive.open(info, "w") as target:
        if isinstance(content, Path):
            with content.open("rb") as file:
                shutil.copyfileobj(file, target, 1 << 20)
        else:
            target.write(content)
