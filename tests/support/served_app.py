"""The application in this process: a scripted search, requests to the application."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from fastapi import FastAPI

from r2med.systems.agents.agent_state import Hit


def requests(app: FastAPI, *calls: dict[str, Any], **client: Any) -> list[httpx.Response]:
    """Return the answers to requests that are made at the same time."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app)
        settings = {"headers": {"Content-Type": "application/json"}, **client}
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", **settings) as session:
            return await asyncio.gather(*(session.request(**call) for call in calls))

    return asyncio.run(ask())


def request(app: FastAPI, method: str = "POST", url: str = "/retrieve", **call: Any) -> httpx.Response:
    [answer] = requests(app, {"method": method, "url": url, **call})
    return answer


class ScriptedSearch:
    """Returns documents named after each query; waits until the gate is open, and fails if a query says "fail"."""

    def __init__(self, gate_is_open: bool = True, error: BaseException | None = None) -> None:
        self.searches: list[tuple[list[str], int]] = []
        self.error = error or RuntimeError("secret internals")
        self.gate = threading.Event()
        if gate_is_open:
            self.gate.set()

    def __call__(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.searches.append((list(queries), k))
        assert self.gate.wait(60)
        if any("fail" in query for query in queries):
            raise self.error
        return [[Hit(f"{query}-{rank}", query, 1 / (rank + 1)) for rank in range(k)] for query in queries]


async def until(happened: Callable[[], bool]) -> None:
    """Return when it has happened, however long that takes; the test as a whole has a limit."""
    while not happened():
        await asyncio.sleep(0.002)
