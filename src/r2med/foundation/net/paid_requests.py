"""Send paid requests: several at once, and only what the budget allows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from r2med.foundation.net.budget import Budget
from r2med.foundation.net.throttle import AdaptiveLimiter

Batch = TypeVar("Batch")


async def send_within_budget(
    batches: Iterable[Batch],
    price: Callable[[Batch], float],
    request: Callable[[Batch, AdaptiveLimiter], Coroutine[Any, Any, None]],
    budget: Budget,
    concurrency: int,
) -> list[Batch]:
    """Send all batches. Return those that the budget did not allow.

    The price of a batch is reserved before `request` sends it; `request` settles it. After an error, nothing new is
    sent. Running requests finish, so that their answers can be saved, and then the error is raised.
    """
    waiting = deque(batches)
    limiter = AdaptiveLimiter(concurrency)
    running: set[asyncio.Task[None]] = set()
    failure: BaseException | None = None
    try:
        while True:
            while waiting and failure is None and len(running) < limiter.limit:
                if not budget.reserve(price(waiting[0])):
                    break  # Only for now, because running requests may cost less than was reserved for them.
                running.add(asyncio.create_task(request(waiting.popleft(), limiter)))
            if not running:
                break
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for error in filter(None, [task.exception() for task in done]):
                failure = failure or error
                limiter.stop()
    finally:
        for task in running:  # Only after Ctrl-C.
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    if failure is not None:
        raise failure
    return list(waiting)
