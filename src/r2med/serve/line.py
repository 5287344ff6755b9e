"""The line before the search: bounded, and those who wait together are searched together.

While one search runs, requests gather. The next search takes all of them that want equally many documents, which
costs a dense model little more than one. Nobody waits for company: who finds the searcher idle is searched at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from r2med.serve.messages import Hit
from r2med.serve.refusals import Refused, busy
from r2med.serve.thread import WorkThread

log = logging.getLogger("r2med")

Found = list[list[Hit]]
Find = Callable[[Sequence[str], int], Found]


@dataclass(frozen=True, eq=False)
class _Request:
    texts: Sequence[str]
    k: int
    answer: asyncio.Future[Found]


class Line:
    """Requests in the order they came, and the one thread that searches."""

    def __init__(self, find: Find, waiting: int, batch: int) -> None:
        self._find, self._most_waiting, self._batch = find, waiting, batch
        self._thread = WorkThread("search")
        self._waiting: deque[_Request] = deque()
        self._running: list[_Request] = []
        self._serving: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_searching(self) -> bool:
        """Whether a search is running now."""
        return bool(self._running)

    @property
    def waiting(self) -> int:
        """How many requests wait for the search that comes after."""
        self._forget_cancelled()
        return len(self._waiting)

    async def search(self, texts: Sequence[str], k: int) -> Found:
        """Return what a request finds. Cancelled while it waits, its work is never done."""
        if self._closed:
            raise busy("the server is stopping")
        if self.waiting >= self._most_waiting:
            raise busy(f"{self._most_waiting} requests are waiting already: try again in a moment")
        request = _Request(texts, k, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._serving is None:
            self._serving = asyncio.create_task(self._serve())
        return await request.answer

    def close(self) -> None:
        """Send all who wait away, and whoever comes; the search that runs goes on."""
        self._closed = True
        while self._waiting:
            _fail(self._waiting.popleft(), busy("the server is stopping"))

    def abandon(self) -> None:
        """Send those away, too, whose search runs; its result will be dropped."""
        for request in self._running:
            _fail(request, busy("the server is stopping"))

    async def _serve(self) -> None:
        try:
            while batch := self._next():
                self._running = batch
                await self._search_together(batch)
                self._running = []
        finally:
            self._serving = None

    def _next(self) -> list[_Request]:
        """Take the first and those behind it that want as many documents, up to the size of a batch.

        As many and not at most as many: a fusion that is asked for more documents may rank them differently.
        """
        self._forget_cancelled()
        taken: list[_Request] = []
        size = 0
        for request in self._waiting:
            if taken and (request.k != taken[0].k or size + len(request.texts) > self._batch):
                continue
            taken.append(request)
            size += len(request.texts)
        for request in taken:
            self._waiting.remove(request)
        return taken

    def _forget_cancelled(self) -> None:
        if any(request.answer.done() for request in self._waiting):
            self._waiting = deque(request for request in self._waiting if not request.answer.done())

    async def _search_together(self, batch: Sequence[_Request]) -> None:
        texts = [text for request in batch for text in request.texts]
        try:
            found = await self._thread.run(lambda: self._find(texts, batch[0].k))
        except Exception as error:
            if len(batch) == 1:
                _fail(batch[0], _told(error))
                return
            for request in batch:  # one of them is at fault, the others are not to suffer for it
                if not request.answer.done():
                    await self._search_together([request])
            return
        at = 0
        for request in batch:
            if not request.answer.done():
                request.answer.set_result(found[at : at + len(request.texts)])
            at += len(request.texts)


def _fail(request: _Request, refusal: Refused) -> None:
    if not request.answer.done():
        request.answer.set_exception(refusal)


def _told(error: Exception) -> Refused:
    """Return what the client is told. Why it failed may name files and models: that is for whoever runs the server."""
    log.warning("a search failed: %s: %s", type(error).__name__, error)
    return Refused(500, "the search failed; the server's log says why")
