"""A limited queue of requests. Requests that wait at the same time are searched together.

While one search runs, other requests wait. The next search takes all waiting requests with the same number of
documents, which costs a dense model little more than one request. If no search runs, a request is searched at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from r2med.server.refusals import HTTPError, unavailable
from r2med.systems.agents.agent_state import Hit

log = logging.getLogger("r2med")

Results = list[tuple[Hit, ...]]
Search = Callable[[Sequence[str], int], Results]
"""Anything that returns the k best documents of each query."""


@dataclass(frozen=True, eq=False)
class _Request:
    queries: Sequence[str]
    k: int
    results: asyncio.Future[Results]


class SearchQueue:
    """Waiting requests in their order, and the thread that searches."""

    def __init__(self, search: Search, max_waiting: int, batch: int) -> None:
        self._search = search
        self._max_waiting = max_waiting
        self._batch = batch
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="search")
        self._waiting: deque[_Request] = deque()
        self._running: list[_Request] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def is_searching(self) -> bool:
        """True if a search is running now."""
        return bool(self._running)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a search."""
        self._forget_cancelled()
        return len(self._waiting)

    async def search(self, queries: Sequence[str], k: int) -> Results:
        """Return the results of one request. A request that is cancelled while it waits is never searched.

        Raises HTTPError if the queue is full or closed, or if the search fails.
        """
        if self._closed:
            raise unavailable("the server is stopping")
        if self.waiting >= self._max_waiting:
            raise unavailable(f"{self._max_waiting} requests are waiting already: try again in a moment")
        request = _Request(queries, k, asyncio.get_running_loop().create_future())
        self._waiting.append(request)
        if self._task is None:
            self._task = asyncio.create_task(self._search_all())
        return await request.results

    def close(self) -> None:
        """Refuse waiting and new requests. The running search continues."""
        self._closed = True
        while self._waiting:
            _fail(self._waiting.popleft(), unavailable("the server is stopping"))

    def abandon(self) -> None:
        """Refuse also the requests of the running search. Its results are dropped."""
        for request in self._running:
            _fail(request, unavailable("the server is stopping"))

    async def _search_all(self) -> None:
        try:
            while batch := self._next_batch():
                self._running = batch
                await self._search_together(batch)
                self._running = []
        finally:
            self._task = None

    def _next_batch(self) -> list[_Request]:
        """Take the first request, and later ones with the same number of documents, up to the size of a batch.

        The numbers must be equal, because a fusion may rank documents differently if it returns more of them.
        """
        self._forget_cancelled()
        batch: list[_Request] = []
        size = 0
        for request in self._waiting:
            if batch and (request.k != batch[0].k or size + len(request.queries) > self._batch):
                continue
            batch.append(request)
            size += len(request.queries)
        for request in batch:
            self._waiting.remove(request)
        return batch

    def _forget_cancelled(self) -> None:
        if any(request.results.done() for request in self._waiting):
            self._waiting = deque(request for request in self._waiting if not request.results.done())

    async def _search_together(self, batch: Sequence[_Request]) -> None:
        queries = [query for request in batch for query in request.queries]
        loop = asyncio.get_running_loop()
        results = await loop.run_in_executor(self._thread, self._attempt, queries, batch[0].k)
        if isinstance(results, BaseException):
            await self._search_apart(batch, results)
            return
        start = 0
        for request in batch:
            end = start + len(request.queries)
            if not request.results.done():
                request.results.set_result(results[start:end])
            start = end

    async def _search_apart(self, batch: Sequence[_Request], error: BaseException) -> None:
        """Search the requests of a failed batch one by one, so that one bad request does not fail the others."""
        if len(batch) == 1:
            # The reason may name files and models, so only the log of the server has it.
            log.warning("a search failed: %s: %s", type(error).__name__, error)
            _fail(batch[0], HTTPError(500, "the search failed; the server's log says why"))
            return
        for request in batch:
            if not request.results.done():
                await self._search_together([request])

    def _attempt(self, queries: Sequence[str], k: int) -> Results | BaseException:
        """Search, or return the error. A model that calls sys.exit() must not end the event loop."""
        try:
            return self._search(queries, k)
        except BaseException as error:
            return error


def _fail(request: _Request, error: HTTPError) -> None:
    if not request.results.done():
        request.results.set_exception(error)
