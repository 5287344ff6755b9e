"""One person's pack for all tests of packs: records of four kinds of systems, and the store behind them."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med.foundation.store import Store
from support import chat_server, tiny_models, tiny_rerankers
from support.chat_server import Exchange
from support.datasets import random_folder

SYSTEMS = ("bge", "bm25 → bge-reranker@5", "hyde(org/m) → bm25", "bm25 → groupwise(org/m)@5")
"""Vectors, scores of pairs, texts and rerankings of an LLM."""


@dataclass
class Person:
    """Someone with a dataset, a store, results and a pack. No test changes anything of theirs."""

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

    def packed(self, file: Path, sources: Any = None, **more: Any) -> Any:
        settings = {"data": [str(self.data)], "store": self.store, "results": self.out, **self.settings, **more}
        return r2med.pack(sources or self.out, file, **settings)

    def run(self, store: Store, out: Path | None, *systems: str, k: int = 20) -> r2med.Results:
        settings = dict(self.settings)
        if systems:  # those that are named ask no LLM
            del settings["base_url"]
        return r2med.run(systems or SYSTEMS, self.data, out=out, k=k, store=store, **settings)


@pytest.fixture(scope="session")
def person(tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Someone whose records were made once. The server of the LLM has ended when this returns."""
    root = tmp_path_factory.mktemp("first")
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
