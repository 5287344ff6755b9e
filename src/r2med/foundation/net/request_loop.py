"""Send many requests to one server: several at once, within a budget, and again after failures that may pass.

The number of requests at once adapts to the server: half as many after a 429, then slowly more again after answers.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.budget import Budget
from r2med.foundation.net.http import Client, RequestFailed

log = logging.getLogger("r2med")

Item = TypeVar("Item")
Answer = TypeVar("Answer")

SHORT_SECONDS = 0.5
"""Waits that are shorter are not reported."""
NOTICE_SECONDS = 10.0
"""Seconds between two lines about waiting requests."""
SILENT_SECONDS = 15.0
"""Seconds without any answer after which a log line says what the program waits for."""


@dataclass(frozen=True)
class Policy:
    """The limits for retries with a provider."""

    concurrency: int = 8
    attempts: int = 6
    first_wait: float = 2.0
    """Maximum seconds of the first wait. Each further wait is twice as long, up to 30 times the first."""
    deadline: float = 300.0
    """Seconds that the attempts and waits of one request may take together."""
    idle: float = 90.0
    """Seconds without a byte after which a request counts as stalled."""


@dataclass
class Request(Generic[Item]):
    """An item on its way to an answer."""

    item: Item
    attempts: int = 0
    dollars: float = 0.0
    """What it cost so far, which `RequestLoop.attempt` sets."""
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        """Seconds since it was first sent."""
        return time.perf_counter() - self.started


class RequestLoop(ABC, Generic[Item, Answer]):
    """The requests of one piece of work. A subclass says what an item may cost, how it is sent, and what follows."""

    def __init__(self, client: Client, policy: Policy, budget: Budget | None = None) -> None:
        self.client = client
        self.policy = policy
        self.budget = budget or Budget()
        self.answered = False
        """True if the server has answered any request."""
        self.error: BaseException | None = None
        """Why nothing is sent any more."""
        self._limit = float(policy.concurrency)
        self._limited_at = -math.inf
        self._free_at = -math.inf
        self._reserved = 0  # requests with a reservation of the budget
        self._sending = 0
        self._reported = -math.inf

    def price(self, item: Item) -> float:
        """Return the most dollars that an item may cost."""
        return 0.0

    @abstractmethod
    async def attempt(self, request: Request[Item]) -> Answer:
        """Send an item once, and return its answer. Raises RequestFailed."""

    @abstractmethod
    async def finish(self, request: Request[Item], outcome: Answer | RequestFailed) -> None:
        """Take an answer, or the last failure if no further attempt would help. An error ends all requests."""

    def before_retry(self, failure: RequestFailed) -> None:
        """Take a failure after which an item is sent again. An error ends all requests."""

    async def run(self, items: Iterable[Item]) -> list[Item]:
        """Send all items, and return those that the budget did not allow.

        After an error nothing new is sent. Running requests finish, so that their answers can be saved, and then the
        error is raised.
        """
        self._stopped, self._changed = asyncio.Event(), asyncio.Event()
        remaining, unsent = iter(items), list[Item]()
        async with self.client:
            workers = set[asyncio.Task[None]]()
            for _ in range(self.policy.concurrency):
                workers.add(asyncio.create_task(self._work(remaining, unsent)))
            try:
                _, running = await asyncio.wait(workers, timeout=SILENT_SECONDS)
                if running and not self.answered and self.error is None:
                    text = "%s has not answered within %g s; each attempt waits up to %g s for a byte; Ctrl-C stops"
                    log.warning(text, self.client.endpoint.server, SILENT_SECONDS, self.policy.idle)
                await asyncio.wait(workers)
            finally:
                for worker in workers:  # Some are not finished only after Ctrl-C.
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        if self.error is not None:
            raise self.error
        return unsent

    async def _work(self, remaining: Iterator[Item], unsent: list[Item]) -> None:
        try:
            while self.error is None and (item := next(remaining, None)) is not None:
                price = self.price(item)
                if not await self._reserve(price):
                    unsent.append(item)
                    continue
                request = Request(item)
                try:
                    outcome = await self._outcome(request)
                finally:
                    self._reserved -= 1
                    self.budget.settle(price, request.dollars)
                    self._changed.set()
                await self.finish(request, outcome)
        except Exception as error:
            self.error = self.error or error
            self._stopped.set()
            self._changed.set()

    async def _reserve(self, price: float) -> bool:
        """Reserve the price of an item. If the budget is too small, wait, because running requests may cost less."""
        while not self.budget.reserve(price):
            if not self._reserved:
                return False
            await self._change()
        self._reserved += 1
        return True

    async def _outcome(self, request: Request[Item]) -> Answer | RequestFailed:
        """Return the answer to an item, or the last failure if no further attempt would help."""
        left = self.policy.deadline
        while True:
            async with self._turn():
                started = time.monotonic()
                request.attempts += 1
                try:
                    async with asyncio.timeout(left):
                        answer = await self.attempt(request)
                    self.answered = True
                    self._limit = min(float(self.policy.concurrency), self._limit + 1 / self._limit)
                    return answer
                except RequestFailed as error:
                    failure = error.with_traceback(None)  # it would keep what was sent in memory
                except TimeoutError:
                    reason = f"{self.client.endpoint.server} gave no complete answer within {left:.3g} s"
                    failure = RequestFailed(reason, again=True, kind="timeout")
            left -= time.monotonic() - started
            wait = self._wait(failure, request.attempts, started, left)
            if wait is None:
                return failure
            self.before_retry(failure)
            await self._sleep(wait)
            left -= wait

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until fewer requests are being sent than the limit, and until the server accepts requests again.

        A request that waits to be sent again takes no place.
        """
        while self._sending >= int(self._limit) and not self._stopped.is_set():
            await self._change()
        self._sending += 1
        try:
            while (wait := self._free_at - time.monotonic()) > 0 and not self._stopped.is_set():
                await self._sleep(wait)
            if self._stopped.is_set():
                raise UserError(f"{self.client.endpoint.server}: stopped, because another request failed")
            yield
        finally:
            self._sending -= 1
            self._changed.set()

    def _wait(self, failure: RequestFailed, attempts: int, started: float, left: float) -> float | None:
        """Return the seconds until the next attempt, or None if no further one would help."""
        wait = seconds_to_wait(failure, attempts, self.policy.first_wait)
        in_time = wait <= left
        if failure.kind == "rate_limit":
            # A wait beyond the deadline ends this request, so it must not delay the others silently.
            self._slow_down(started, wait if in_time and failure.retry_after else 0.0)
        most = failure.max_attempts or self.policy.attempts
        if not failure.again or not in_time or attempts >= most or self._stopped.is_set():
            return None
        is_due = wait >= SHORT_SECONDS and time.monotonic() >= self._reported + NOTICE_SECONDS
        if is_due:  # All waiting requests share one line every few seconds.
            self._reported = time.monotonic()
        level = logging.WARNING if is_due else logging.DEBUG
        log.log(level, "%s: trying again in %.1f s (%d of %d)", failure, wait, attempts, most)
        return wait

    def _slow_down(self, started: float, wait: float) -> None:
        """Send half as many at once, and nothing for `wait` seconds. Requests sent before the last 429 do not count."""
        if started >= self._limited_at:
            self._limit = max(1.0, self._limit / 2)
            self._limited_at = time.monotonic()
        self._free_at = max(self._free_at, time.monotonic() + wait)

    async def _sleep(self, seconds: float) -> None:
        """Wait for some seconds, or until an error ends all requests."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            pass

    async def _change(self) -> None:
        """Wait until a request ends."""
        self._changed.clear()
        await self._changed.wait()


def seconds_to_wait(failure: RequestFailed, attempts: int, first_wait: float) -> float:
    """Return the requested wait with a small random addition, or full jitter (AWS), so that clients are spread out."""
    if failure.retry_after is not None:
        return failure.retry_after + random.uniform(0, min(1.0, failure.retry_after / 10))
    return random.uniform(0, first_wait * min(30, 2 ** (attempts - 1)))
