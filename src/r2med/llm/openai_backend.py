"""LLMs behind an OpenAI-compatible endpoint: many questions at once, patiently, each answer handed on as it comes.

The SDK's own retries are off: theirs know no deadline, no shrinking limit and no Ctrl-C. Answers are streamed, so that
a server that has stalled is told from one that is still writing.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from r2med.errors import MissingExtraError, UserError
from r2med.llm.contracts import ChatRequest, Failure, RawAnswer
from r2med.llm.llm_cards import LLMCard
from r2med.llm.openai_errors import status_failure, transport_failure
from r2med.llm.openai_request import parameters, path
from r2med.llm.price import cost_at_most, cost_usd
from r2med.llm.reply import ErrorReply, MalformedReply, Reply
from r2med.llm.sse import events
from r2med.net.budget import Budget
from r2med.net.endpoint import Endpoint, endpoint_at
from r2med.net.http import run_sync
from r2med.net.retry import Policy, RequestFailed, given_up, try_send
from r2med.net.throttle import AdaptiveLimiter
from r2med.setup import Setup

OPENAI = "https://api.openai.com/v1"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_LAST_BYTES = 0.5
"""Seconds for what may follow the end of an answer; a server that then keeps the connection open need not be heard."""

Done = Callable[[int, RawAnswer | Failure], None]


class OpenAIBackend:
    """An endpoint as a backend; `policy` is for tests."""

    def __init__(self, card: LLMCard, options: Setup, policy: Policy | None = None) -> None:
        self._card = card
        given = options.base_url or (
            "" if card.base_url or card.api_key_env != "OPENAI_API_KEY" else os.environ.get("OPENAI_BASE_URL", "")
        )
        url = (given or card.base_url).strip().rstrip("/")
        self._where = endpoint_at("" if url == OPENAI else url, card.name, card.api_key_env)
        host = urlsplit(self._where.url).hostname
        # The known providers always want a key; servers of one's own seldom do.
        known = not self._where.url or (not given and card.api_key_env != "OPENAI_API_KEY")
        self._needs_key = known and host not in _LOOPBACK
        patience = policy or Policy(deadline=options.deadline, idle=options.idle)
        self._policy = replace(patience, concurrency=options.concurrency)
        self._budget = options.budget
        if options.budget.limit is not None and "price" not in card.model_fields_set and host not in _LOOPBACK:
            raise UserError(
                f"{card.name} has no price in its card, so no budget can be kept: "
                "add it (0 where it is free), or run without a budget"
            )

    def describe(self) -> dict[str, Any]:
        """Return what answers depend on here; the server only as a hash, since a URL may hold secrets."""
        return {
            "backend": "openai",
            "model": self._card.model,
            "endpoint": self._where.identity,
            "api_style": self._card.api_style,
            "thinking": self._card.thinking,
        }

    def answer(self, requests: Sequence[ChatRequest], done: Done) -> None:
        """Answer all requests; see Backend."""
        if requests:
            if not self._where.url and "/" in self._card.model:  # a name of the hub's: OpenAI has none like it
                raise UserError(
                    f"{self._card.name} is not one of OpenAI's models: say where it is served with --base-url URL, "
                    "or run it in this process with --llm-backend vllm"
                )
            key = self._where.key() if self._needs_key or self._where.has_key else "none"
            run = _Run(self._card, self._where, self._policy, self._budget, requests, done)
            run_sync(run.all(key))


@dataclass
class _Run:
    """The requests of one call."""

    card: LLMCard
    where: Endpoint
    policy: Policy
    budget: Budget
    requests: Sequence[ChatRequest]
    done: Done
    answered: bool = False
    """Whether the endpoint has answered anything yet."""
    tells_usage: bool = True
    """Whether it takes `stream_options`; asked once, since servers of old refuse it."""
    failure: BaseException | None = None
    under_way: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    client: Any = field(default=None, repr=False)

    async def all(self, key: str) -> None:
        """Ask everything. After an error that all would meet nothing new is sent, what is under way comes in, and then
        the error is raised.
        """
        self.throttle = AdaptiveLimiter(self.policy.concurrency)
        waiting = iter(range(len(self.requests)))
        async with _connected(self.where, self.policy, key) as self.client:
            workers = [
                asyncio.create_task(self._work(waiting))
                for _ in range(min(self.policy.concurrency, len(self.requests)))
            ]
            try:
                await asyncio.wait(workers)
            finally:
                for worker in workers:  # only after Ctrl-C is any of them not done
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        if self.failure is not None:
            raise self.failure

    async def _work(self, waiting: Iterator[int]) -> None:
        for place in waiting:
            try:
                await self._ask(place)
            except Exception as error:
                self.failure = self.failure or error
                self.throttle.stop()
            if self.failure is not None:
                return

    async def _ask(self, place: int) -> None:
        request = self.requests[place]
        reserved, paid = cost_at_most(self.card, request), 0.0
        if not await self._afford(reserved):
            self.done(place, Failure("budget", self._unaffordable(reserved), attempts=0))
            return
        started = time.monotonic()
        try:
            outcome, attempts = await try_send(
                lambda: self._send(request), self.where.server, self.policy, self.throttle
            )
            # From here to the end nothing waits, so that Ctrl-C finds an answer kept or not yet come.
            if isinstance(outcome, RawAnswer):
                paid = cost_usd(self.card, outcome.prompt_tokens, outcome.completion_tokens)
        finally:
            self.budget.settle(reserved, paid)
            self.under_way -= 1
            self.settled.set()
        if isinstance(outcome, RawAnswer):
            self.answered = True
            self.done(place, replace(outcome, attempts=attempts))
        elif self._all_would_fail(outcome):
            raise given_up(outcome, attempts)
        else:
            self.done(place, Failure(outcome.kind, str(outcome), attempts, seconds=time.monotonic() - started))

    def _all_would_fail(self, failure: RequestFailed) -> bool:
        # A gateway may forbid one question (403), garble an answer or be away for a while: so only when it never
        # answered any.
        return failure.for_all or (not self.answered and (failure.kind in ("auth", "invalid") or failure.unreachable))

    async def _afford(self, cost: float) -> bool:
        """Set the most that a request may cost aside; what is under way may cost less than was set aside for it."""
        while not self.budget.reserve(cost):
            if not self.under_way:
                return False
            self.settled.clear()
            await self.settled.wait()
        self.under_way += 1
        return True

    def _unaffordable(self, cost: float) -> str:
        return (
            f"the budget of ${self.budget.limit:.6g} allows no further request: ${self.budget.spent:.6f} spent, "
            f"and this one may cost up to ${cost:.6f}; answers are kept: run again with a larger budget to continue"
        )

    async def _send(self, request: ChatRequest) -> RawAnswer:
        reply = Reply()
        started = time.monotonic()
        failure = await self._read(request, reply)
        # An answer that came whole is one, even if the connection broke before the bill.
        if failure is not None and not reply.complete:
            raise failure
        if not reply.complete:
            raise RequestFailed(f"the answer of {self.where.server} stopped half-way", again=True)
        return reply.answer(request, time.monotonic() - started)

    async def _read(self, request: ChatRequest, reply: Reply) -> RequestFailed | None:
        # Returned, not raised: an exception from inside an `except` would carry the SDK's, with its request and key.
        import openai

        headers: Mapping[str, str] = {}
        settings = parameters(self.card, request)
        if with_usage := self.tells_usage:
            settings["stream_options"] = {"include_usage": True}
        try:
            # Not `chat.completions.create`, which takes longer to look at what is sent than all else does.
            sent = {"body": settings, "cast_to": object, "stream": True, "stream_cls": openai.AsyncStream[object]}
            async with await self.client.post(path(request), **sent) as stream:
                await _receive(stream.response, reply, raw=request.prompt is not None)
            return None
        except openai.APIStatusError as error:
            status, headers, body = error.status_code, error.response.headers, error.response.text
        except ErrorReply as error:
            status, body = error.status, error.body
        except MalformedReply as error:
            # Once or twice is a proxy's hiccup; more is a wrong address, and asking on would not help.
            reason = f"{self.where.server}: the answer is {error}: is the base URL right?"
            return RequestFailed(reason, again=True, kind="invalid", max_attempts=3)
        except Exception as error:
            if (failure := transport_failure(self.where, error, self.policy.idle)) is None:
                raise
            return failure
        if status in (400, 422) and with_usage and "stream_options" in body:
            self.tells_usage = False
            return await self._read(request, reply)
        return status_failure(self.where, self.card.model, status, headers, body)


async def _receive(response: Any, reply: Reply, raw: bool) -> None:
    if "json" in (response.headers.get("content-type") or ""):  # a server that does not stream
        reply.take(b"".join([chunk async for chunk in response.aiter_bytes()]), "text" if raw else "message")
        if not reply.complete:
            raise MalformedReply("without choices or finish_reason")
        return
    pieces = 0
    stream = events(response.aiter_bytes())
    async for data in stream:
        if data.strip() == b"[DONE]":
            break
        reply.take(data, "text" if raw else "delta")
        pieces += 1
    if not pieces:
        raise MalformedReply("neither JSON nor a stream of it")
    # A connection is used again only when its last answer was read to its very end.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_BYTES):
            async for _ in stream:
                pass


@asynccontextmanager
async def _connected(where: Endpoint, policy: Policy, key: str) -> AsyncIterator[Any]:
    try:
        import openai
    except ImportError:
        raise MissingExtraError(f"the LLM {where.provider}", "llm") from None
    client = openai.AsyncOpenAI(
        api_key=key,
        base_url=where.url or OPENAI,
        max_retries=0,
        timeout=openai.Timeout(policy.idle, connect=min(20.0, policy.idle), pool=None),
    )
    async with client:
        yield client
