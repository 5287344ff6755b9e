"""What repeats are tested with: a small dataset and an LLM whose answers depend on the seed of the request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from r2med.data import load
from r2med.data.dataset import Dataset
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.chat_server import Server, by_seed
from support.datasets import random_folder


@pytest.fixture
def served(chat_server: Server) -> Server:
    chat_server.otherwise = by_seed
    return chat_server


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    return load(random_folder(tmp_path / "mini", documents=40))


@pytest.fixture
def runtime(served: Server, tmp_path: Path) -> Iterator[Runtime]:
    with Runtime(base_url=served.address, store=Store(tmp_path / "store"), first_wait=0.001) as opened:
        yield opened
