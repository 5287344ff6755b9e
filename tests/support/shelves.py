"""Applications in this process: a dataset of any corpus, a searcher that does as it is told, requests to them."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import httpx
from fastapi import FastAPI

from r2med.data import Corpus
from r2med.data.model import Dataset, Qrels
from r2med.serve.messages import Hit


def dataset_of(corpus: Corpus) -> Dataset:
    return Dataset("small", (), corpus, Qrels({}))


def requests(app: FastAPI, *calls: dict[str, Any], **client: Any) -> list[httpx.Response]:
    """Return the answers to requests that are made at the same time."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", **client) as session:
            return await asyncio.gather(*(session.request(**call) for call in calls))

    return asyncio.run(ask())


def request(app: FastAPI, method: str = "POST", url: str = "/retrieve", **call: Any) -> httpx.Response:
    [answer] = requests(app, {"method": method, "url": url, **call})
    return answer


class Scripted:
    """Finds a document named after each query; a search waits at the gate, and fails if a text says so."""

    def __init__(self, gate: bool = False) -> None:
        self.searches: list[tuple[list[str], int]] = []
        self.gate = threading.Event()
        if not gate:
            self.gate.set()

    def find(self, texts: Sequence[str], k: int) -> list[list[Hit]]:
        self.searches.append((list(texts), k))
        assert self.gate.wait(60)
        if any("fail" in text for text in texts):
            raise RuntimeError("secret internals")
        return [[Hit(f"{text}-{rank}", text, 1 / (rank + 1)) for rank in range(k)] for text in texts]


async def until(happened: Any) -> None:
    """Return when it has happened, however long that takes; the test as a whole has a limit."""
    while not happened():
        await asyncio.sleep(0.002)
