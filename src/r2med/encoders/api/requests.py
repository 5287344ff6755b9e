"""Getting vectors for texts: batches within limits and budget, several at once, each kept the moment it arrives."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from r2med.encoders.api.answers import billed_tokens, check_dimension, read_answer
from r2med.encoders.api.cache import Cache
from r2med.encoders.api.providers import Provider, Send
from r2med.encoders.api.usage import Usage
from r2med.encoders.encoder import Vectors
from r2med.encoders.model_cards import ModelCard
from r2med.errors import UserError
from r2med.net.budget import Budget
from r2med.net.endpoint import Endpoint
from r2med.net.retry import Policy, send
from r2med.net.throttle import AdaptiveLimiter

Found = dict[bytes, tuple[Vectors, int]]


@dataclass(frozen=True)
class Parcel:
    """A text to send, the key its vector is kept under, and how many tokens it has at most."""

    key: bytes
    text: str
    tokens: int


@dataclass
class Requests:
    """The requests of one call of `encode`."""

    provider: Provider
    endpoint: Endpoint
    policy: Policy
    budget: Budget
    usage: Usage
    cache: Cache
    card: ModelCard

    def __post_init__(self) -> None:
        self.found: Found = {}
        self._dimension = self.card.dimension

    async def fetch(self, parcels: Sequence[Parcel], model: str, input_type: str) -> Found:
        """Return the vectors of all parcels. On an error or an empty budget nothing new is sent, what is under way
        comes in and is kept, and then the error is raised.
        """
        waiting = deque(batches(parcels, self.provider))
        limiter = AdaptiveLimiter(self.policy.concurrency)
        running: set[asyncio.Task[None]] = set()
        failure: BaseException | None = None
        async with self.provider.connect(self.endpoint, model, input_type, self.policy) as ask:
            try:
                while True:
                    while waiting and failure is None and len(running) < limiter.limit:
                        if not self.budget.reserve(self._cost(waiting[0])):
                            break  # for now: what is under way may cost less than was set aside for it
                        running.add(asyncio.create_task(self._request(ask, waiting.popleft(), limiter)))
                    if not running:
                        break
                    done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for error in filter(None, [task.exception() for task in done]):
                        failure = failure or error
                        limiter.stop()
            finally:
                for task in running:  # only after Ctrl-C
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
        if failure is not None:
            raise failure
        if waiting:
            raise self.budget.exceeded(sum(map(len, waiting)))
        return self.found

    def _cost(self, batch: Sequence[Parcel]) -> float:
        return self._price(sum(parcel.tokens for parcel in batch))

    def _price(self, tokens: int) -> float:
        return tokens * self.card.price_per_million_tokens / 1e6

    async def _request(self, ask: Send, batch: list[Parcel], limiter: AdaptiveLimiter) -> None:
        reserved = self._cost(batch)
        cost = 0.0
        try:
            texts = [parcel.text for parcel in batch]
            body = await send(
                lambda: ask(texts), self.provider.name, self.policy, limiter, lambda failure: self.usage.retry()
            )
            # From here to the last line nothing waits, so that Ctrl-C finds an answer kept or not yet come.
            tokens = billed_tokens(body, sum(parcel.tokens for parcel in batch))
            cost = self._price(tokens)
            self.usage.pay(tokens, cost)
        finally:
            self.budget.settle(reserved, cost)
        answer = read_answer(body, len(batch), self.provider.name)
        good = [place for place in range(len(batch)) if place not in answer.bad]
        self._dimension = check_dimension(
            [answer.rows[place] for place in good], self._dimension, self.provider.name, self.card.spec
        )
        shares = _shares(tokens, [parcel.tokens for parcel in batch])
        rows = {batch[place].key: (answer.rows[place], shares[place]) for place in good}
        self.cache.put(rows)
        self.found |= rows
        if answer.bad:
            text = batch[answer.bad[0]].text
            raise UserError(
                f"{self.provider.name}: the embedding of {text[:60]!r} that came back is not finite numbers"
            )


def batches(parcels: Sequence[Parcel], provider: Provider) -> list[list[Parcel]]:
    """Return the parcels in order, in batches within a provider's limits."""
    out: list[list[Parcel]] = []
    tokens = 0
    for parcel in parcels:
        tokens += parcel.tokens
        if not out or len(out[-1]) >= provider.texts_per_request or tokens > provider.tokens_per_request:
            out.append([])
            tokens = parcel.tokens
        out[-1].append(parcel)
    return out


def _shares(total: int, weights: Sequence[int]) -> list[int]:
    """Return whole shares of a bill, by weight, that add up to it."""
    whole, before, shares = max(1, sum(weights)), 0, []
    for weight in weights:
        shares.append((before + weight) * total // whole - before * total // whole)
        before += weight
    return shares
