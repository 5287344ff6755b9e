"""Asking a /retrieve server: several requests at once, patiently, and no answer taken for more than it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from r2med.agents.contracts import Document
from r2med.agents.remote_answer import MalformedAnswer, read_answer
from r2med.errors import MissingExtraError
from r2med.llm.contracts import Failure
from r2med.llm.openai_errors import dropped, transport_failure
from r2med.net.endpoint import Endpoint
from r2med.net.http import run_sync
from r2med.net.retry import Policy, RequestFailed, status_failure, try_send
from r2med.net.throttle import AdaptiveLimiter

BYTES = 1 << 20, 1 << 18
"""An answer's size at most: this much, and so much more for each document that was asked for."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class RetrieveClient:
    """One server, asked for so many documents a query."""

    where: Endpoint
    policy: Policy
    topk: int

    def ask(self, batches: Sequence[Sequence[str]]) -> list[list[tuple[Document, ...]] | Failure]:
        """Return for each batch of queries their documents, or why there are none after all attempts."""
        return run_sync(self._all(batches))

    async def _all(self, batches: Sequence[Sequence[str]]) -> list[list[tuple[Document, ...]] | Failure]:
        headers = {"Authorization": f"Bearer {self.where.key()}"} if self.where.has_key else {}
        http, throttle = _http(), AdaptiveLimiter(self.policy.concurrency)
        timeout = http.Timeout(self.policy.idle, connect=min(10.0, self.policy.idle), pool=None)
        own = urlsplit(self.where.url).hostname in _LOOPBACK  # where no proxy can lead
        async with http.AsyncClient(timeout=timeout, headers=headers, trust_env=not own) as client:
            sent = [self._persistently(client, batch, throttle) for batch in batches]
            return list(await asyncio.gather(*sent))

    async def _persistently(
        self, client: Any, batch: Sequence[str], throttle: AdaptiveLimiter
    ) -> list[tuple[Document, ...]] | Failure:
        outcome, attempts = await try_send(lambda: self._send(client, batch), self.where.server, self.policy, throttle)
        if isinstance(outcome, RequestFailed):
            return Failure(outcome.kind, str(outcome), attempts)
        return outcome

    async def _send(self, client: Any, batch: Sequence[str]) -> list[tuple[Document, ...]]:
        question = {"queries": list(batch), "topk": self.topk, "return_scores": True}
        most = BYTES[0] + BYTES[1] * len(batch) * self.topk
        try:
            async with client.stream("POST", self.where.url, json=question) as response:
                status, headers, body = response.status_code, response.headers, bytearray()
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > most:
                        raise MalformedAnswer(f"it is larger than {most >> 20} MB")
            if status == 200:
                return read_answer(bytes(body), len(batch))
            failure = status_failure(self.where, status, headers, body.decode(errors="replace"))
        except MalformedAnswer as error:
            reason = f"{self.where.server} gave an answer that is none: {error}"
            failure = RequestFailed(reason, again=True, kind="invalid", max_attempts=2)  # a proxy's hiccup, perhaps
        except Exception as error:
            known = transport_failure(self.where, error, self.policy.idle)
            if known is None:
                raise
            # An LLM's endpoint that is not there is told of its base URL; here the address is remote='s.
            failure = dropped(self.where, error) if known.unreachable else known
        raise failure


def _http() -> Any:
    # The openai SDK brings one or the other, by its version; they are alike.
    for name in ("httpx", "httpx2"):
        try:
            return import_module(name)
        except ImportError:
            continue
    raise MissingExtraError("a remote search", "llm")
