"""Find what the records of a pack need: each system runs once more on the store, and everything it reads is noted.

Nothing is asked, encoded or downloaded. The run must come out with the bytes of the record's run file. So a pack is
complete by construction: the same command reads the same things from a store that has only the pack.
"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from r2med.data import Dataset
from r2med.data.given_data import GivenData
from r2med.data.loading import load_dataset
from r2med.data.runs import write_run
from r2med.evaluation.records.local_datasets import given_places
from r2med.evaluation.records.record import Record, record_key
from r2med.evaluation.records.repeats import repeat_setting, setting_difference
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.evaluation.running.evaluation import slug
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store.files import json_line, sha256
from r2med.foundation.store.reads import Reads, noted_reads
from r2med.systems.expand.generations import generations_path
from r2med.systems.expand.recorded import Recorded
from r2med.systems.system import System


@dataclass
class Needed:
    """What the records of one dataset read from the store."""

    dataset: Dataset
    artefacts: set[tuple[str, str]] = field(default_factory=set)
    """(kind, key) of each artefact."""
    texts: dict[Path, set[bytes]] = field(default_factory=dict)
    """File of the store -> keys of the rows that expansions read."""
    scores: dict[Path, set[bytes]] = field(default_factory=dict)
    """File of the store -> keys of the rows that retrievers and rerankers read."""
    answers: dict[Path, set[bytes]] = field(default_factory=dict)
    """File of the store -> keys of the rows that readers and judges of answers read."""
    generations: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """Path in a folder of recorded generations -> key of a record that read the file, and its rows."""

    def add(self, reads: Reads, rows: dict[Path, set[bytes]]) -> None:
        """Add what was read."""
        self.artefacts |= reads.artefacts
        for file, keys in reads.rows.items():
            rows.setdefault(file, set()).update(keys)


def find_datasets(collection: RecordCollection, data: Sequence[GivenData], runtime: Runtime) -> dict[str, Dataset]:
    """Return the datasets of records by name. Raises UserError if one is not here, or has changed since."""
    places = given_places(data, runtime.store)
    found: dict[str, Dataset] = {}
    for name in collection.datasets:
        try:
            place = places.get(name, name)
            dataset = place if isinstance(place, Dataset) else load_dataset(place, runtime.store)
        except UserError as error:
            raise UserError(
                f"{name}: ", error, " (name the folder of your own data: r2med pack --data FOLDER)"
            ) from None
        for kept in collection.runs_of_all:
            if kept.record.dataset.name == name and kept.record.dataset.fingerprint != dataset.fingerprint:
                raise UserError(f"{kept.path}: {name} has changed since this record was made: run it again")
        found[name] = dataset
    return found


def needed(
    collection: RecordCollection, datasets: Mapping[str, Dataset], runtime: Runtime, *, vectors: bool
) -> dict[str, Needed]:
    """Return dataset -> what its records read. With `vectors`, also what their searches read when they were made."""
    found = {name: Needed(dataset) for name, dataset in datasets.items()}
    for kept in collection.runs_of_all:
        _add_reads(kept, found[kept.record.dataset.name], runtime, vectors)
    return found


def _add_reads(kept: StoredRecord, into: Needed, runtime: Runtime, vectors: bool) -> None:
    record, dataset, store = kept.record, into.dataset, runtime.store
    opened = runtime.with_settings(**model_settings(record.settings, runtime), repeat=record.repeat)
    system = System.parse(record.system, opened)
    try:
        with noted_reads(search_again=vectors) as expanding:
            expansion = system.expand(dataset, store)
        settings = {**system.key(dataset, expansion), "k": record.settings["k"], **repeat_setting(system.repeat)}
        if record_key(settings, dataset.fingerprint) != record.key:
            raise UserError(
                f"{setting_difference(record.settings, settings)} in the record: give the flags of its r2med run"
            )
        with noted_reads(search_again=vectors) as ranking:
            outcome = system.run(dataset, store, record.settings["k"], expansion)
            system.approximations(dataset, store, record.settings["k"], outcome)
    except UserError as error:
        raise UserError(
            f"{kept.path}: {record.system} on {record.dataset.name}: ", error, f"; {_again(record)}"
        ) from None
    if any(file.parent.name == "remote" for file in (*expanding.rows, *ranking.rows)):
        raise UserError(f"{kept.path}: {record.system} read documents of a search server, which a pack cannot hold")
    with tempfile.TemporaryDirectory(prefix="r2med-") as folder:
        write_run(outcome.run, Path(folder) / "run.trec.gz", slug(system.name))
        if record.run is not None and sha256(Path(folder) / "run.trec.gz") != record.run.sha256:
            raise UserError(f"{kept.path}: this store gives another run than that of the record; {_again(record)}")
    for recorded in system.recorded if runtime.setup.generations is not None else ():
        path = f"{record.dataset.name}/{generations_path(recorded.stage.name, recorded.llm)}"
        into.generations.setdefault(path, (record.key, _recorded_rows(recorded, dataset)))
    into.add(expanding, into.texts)
    into.add(ranking, into.scores)


def _recorded_rows(recorded: Recorded, dataset: Dataset) -> bytes:
    """Return recorded texts as the lines of a file, without the texts of the queries."""
    texts = recorded.raw_texts(dataset)
    return b"".join(json_line({"id": query, "hy_doc": list(parts)}) for query, parts in texts.items())


def _again(record: Record) -> str:
    return f"run it again ({shlex.join(['r2med', 'run', record.system, *_name_flag(record)])}), then pack it"


def _name_flag(record: Record) -> list[str]:
    return ["--name", record.name] if record.name else []


def model_settings(settings: Mapping[str, Any], runtime: Runtime) -> dict[str, str]:
    """Return the precision and the library of a record's models as fields of Setup, unless the user gave others."""
    found = {name: {*_values(settings, name)} for name in ("dtype", "backend")}
    backend = next(iter(found["backend"] - {"openai", "local", "scripted"}), "torch")
    if backend != "torch":
        return {"backend": backend} if runtime.setup.backend == "torch" else {}
    dtypes = found["dtype"]
    return {"dtype": dtypes.pop()} if len(dtypes) == 1 and runtime.setup.dtype == "auto" else {}


def _values(settings: Any, name: str) -> Iterator[str]:
    """Yield every value of this name in nested settings."""
    if isinstance(settings, Mapping):
        if isinstance(settings.get(name), str):
            yield settings[name]
        settings = list(settings.values())
    if isinstance(settings, list | tuple):
        for part in settings:
            yield from _values(part, name)


def command_of(record: Record, base_url: str = "", generations: str = "", repeats: int = 1) -> str:
    """Return the command that makes a record from a pack, with the flags that its key depends on.

    `repeats` is the number of runs in the pack.
    """
    words = ["r2med", "run", record.system, *_name_flag(record), "--data", record.dataset.name]
    if record.settings["k"] != 1000:
        words += ["--k", str(record.settings["k"])]
    if repeats > 1:
        words += ["--repeats", str(repeats)]
    return shlex.join([*words, *model_flags(record.settings, base_url, generations)])


def model_flags(settings: Mapping[str, Any], base_url: str, generations: str) -> list[str]:
    """Return the flags of models and LLMs that a record's key depends on.

    `base_url` is the address of its LLM, and `generations` the folder of recorded texts, where there is one.
    """
    words: list[str] = []
    dtypes = {*_values(settings, "dtype")} - {"float32"}
    if len(dtypes) == 1 and "openvino" not in _values(settings, "backend"):
        words += ["--dtype", dtypes.pop()]
    if "openvino" in _values(settings, "backend"):
        words += ["--backend", "openvino"]
    if base_url and any(_values(settings, "endpoint")):
        words += ["--base-url", _shown_address(base_url)]
    if generations:
        words += ["--generations", generations]
    return words


def flags_of(runtime: Runtime) -> tuple[str, str]:
    """Return the address and the folder of recorded texts for the commands of a pack that is made here."""
    return runtime.setup.base_url or "", "results/generations" if runtime.setup.generations is not None else ""


def _shown_address(url: str) -> str:
    """Return an address of this machine, which says nothing about anyone; another one is only named."""
    parts = urlsplit(url)
    return url if parts.hostname in ("localhost", "127.0.0.1") and parts.path in ("", "/", "/v1") else "URL"
