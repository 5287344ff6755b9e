"""The first person of the tests of packs: records of four kinds of systems, a store, and a pack of both."""

import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import r2med
from r2med.foundation.store import Store
from r2med.publication.packs.pack_manifest import DEFAULT, PackManifest
from support import chat_server, tiny_models, tiny_rerankers
from support.chat_server import Exchange
from support.datasets import random_folder

SYSTEMS = ("bge", "bm25 → bge-reranker@5", "hyde(org/m) → bm25", "bm25 → groupwise(org/m)@5")
"""Vectors, scores of pairs, texts and rerankings of an LLM."""

Files = dict[str, bytes]


@dataclass
class Person:
    """Someone with a dataset, a store, results and a pack."""

    root: Path
    settings: dict[str, Any]
    records: list[r2med.Record] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.root / "mini"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def store(self) -> Store:
        return Store(self.root / "store")

    @property
    def pack(self) -> Path:
        return self.root / "run.r2pack"

    def packed(self, file: Path, with_: Any = DEFAULT, sources: Any = None, **more: Any) -> PackManifest:
        settings = {"data": [str(self.data)], "store": self.store, "results": self.out, **self.settings, **more}
        return r2med.pack(sources or self.out, file, with_, **settings)

    @property
    def of_models(self) -> dict[str, Any]:
        """The settings of systems that ask no LLM."""
        return {name: value for name, value in self.settings.items() if name != "base_url"}

    def run(self, store: Store, out: Path, *systems: str) -> r2med.Results:
        settings = self.of_models if systems else self.settings  # those that are named ask none
        return r2med.run(systems or SYSTEMS, self.data, out=out, k=20, store=store, **settings)


def first_person(root: Path) -> Person:
    """Make the records and their pack. The server of the LLM has ended when this returns."""
    random_folder(root / "mini", documents=30)
    paths = {
        "bge": tiny_models.bert(root / "bert", positions=512),
        "bge-reranker": tiny_rerankers.bert(root / "cross", labels=1, positions=2048),
    }
    with chat_server.serve() as server:
        server.otherwise = _reply
        person = Person(root, {"base_url": server.address, "device": "cpu", "model_paths": paths})
        person.records = person.run(person.store, person.out).records
    assert [record.unordered + record.failures for record in person.records] == [0, 0, 0, 0]
    person.packed(person.pack)
    return person


async def _reply(exchange: Exchange) -> None:
    """Answer with scores where they are asked for, otherwise with a passage."""
    asked = re.findall(r"from 1 to (\d+)", exchange.request.question)
    scores = {str(number): 10 - number for number in range(1, int(asked[-1]) + 1)} if asked else {}
    await chat_server.answer(f"Answer: rest.\n{json.dumps(scores)}" if asked else None)(exchange)


def unzipped(path: Path) -> Files:
    """Return the files of a pack."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def zipped(path: Path, files: Files, extra: Callable[[zipfile.ZipFile], None] = lambda archive: None) -> Path:
    """Write files as a zip, which `extra` may add to."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        extra(archive)
    return path


def unmarked(*folders: Path) -> list[object]:
    """Return the content of every file in some folders, without what `unpack` and a later run note in records."""
    return [_unmarked(path, content) for path, content in tree(*folders).items()]


def _unmarked(path: str, content: bytes) -> object:
    if not path.endswith(".json"):
        return content
    noted = ("unpacked", "named", "checksum")
    return {name: value for name, value in json.loads(content).items() if name not in noted}


def tree(*folders: Path) -> Files:
    """Return every file in some folders, without the files that SQLite keeps beside its tables."""
    return {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }
