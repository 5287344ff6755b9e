"""LLMs behind an OpenAI-compatible endpoint. Many questions are sent at once, and each answer is passed on immediately.

Read from top to bottom: the backend, one call of it, one question. `openai_protocol` builds requests and parses
answers. Answers are streamed, which distinguishes a stalled server from one that is still writing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.budget import Budget
from r2med.foundation.net.endpoint import Endpoint, endpoint_at, warn_before_sending
from r2med.foundation.net.http import Client, HTTPAnswer, run_sync
from r2med.foundation.net.retry import Policy, RequestFailed, explained, given_up, try_send
from r2med.foundation.net.throttle import AdaptiveLimiter
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.chat import Ability, ChatRequest, Failure, RawAnswer, Usage
from r2med.models.llm.costs import dollars, dollars_at_most, request_tokens
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.llm.openai_protocol import (
    NO_SCHEMA_MESSAGE,
    ErrorReply,
    MalformedReply,
    Reply,
    answer_failure,
    count_body,
    counted_share,
    request_body,
    share_that_fits,
    tools_refused,
)

log = logging.getLogger("r2med")

OPENAI_URL = "https://api.openai.com/v1"
_BILL_SECONDS = 5.0
"""Seconds to wait for the bill after the end of an answer. Then its tokens are estimated."""
_DRAIN_SECONDS = 0.5
"""Seconds to wait for the rest of a stream, so that its connection can be used again."""
NOTICE_SECONDS = 15.0
"""Seconds without any answer after which a log line says what the program waits for."""
_MAX_EQUAL_FAILURES = 12
"""Number of equal failures without an answer between them after which an endpoint is given up."""
DEAD_SECONDS = 60.0
"""Seconds for which an endpoint that could not be reached is not tried again."""
_ENDPOINT_FAILURES = ("timeout", "connection", "rate_limit", "server", "auth", "invalid")
"""Kinds of failures that do not depend on the question."""

Done = Callable[[int, RawAnswer | Failure], None]


class OpenAIBackend:
    """An endpoint as a backend."""

    def __init__(self, card: LLMCard, runtime: Runtime) -> None:
        self._card = card
        of_environment = "" if card.base_url or card.api_key_env != "OPENAI_API_KEY" else "OPENAI_BASE_URL"
        given = runtime.setup.base_url or os.environ.get(of_environment, "").strip()
        endpoint = endpoint_at(given or card.base_url, card.name, card.api_key_env)
        # OpenAI's own address is treated like no address, because the journal has its answers under that key.
        self._endpoint = replace(endpoint, url="") if endpoint.url == OPENAI_URL else endpoint
        self.is_local = endpoint.is_local
        # The known providers always require a key. A user's own server rarely does.
        known = not self._endpoint.url or (not given and card.api_key_env != "OPENAI_API_KEY")
        self._needs_key = known and not self.is_local
        self._policy = runtime.setup.policy
        self._budget = runtime.budget
        self._warned = runtime.warned
        # Endpoints and models that refused the schema of an answer. It is tried once, and one warning is logged.
        self._without_schema: set[tuple[str, str]] = runtime.opened("LLMs without a schema", set)
        # Endpoints that could not be reached: the next dataset would wait for the same attempts.
        self._dead: dict[str, tuple[float, str]] = runtime.opened("endpoints without an answer", dict)
        if runtime.budget.limit is not None and "price" not in card.model_fields_set and not self.is_local:
            raise UserError(
                f"{card.name} has no price in its card, so a budget cannot be checked; "
                "add the price (0 if the model is free), or run without a budget"
            )

    @property
    def lacks(self) -> Collection[Ability]:
        """What the card says, and what OpenAI's own API lacks: it continues no texts with its models of today."""
        lacks: set[Ability] = set(self._card.lacks)
        if not self._endpoint.url and "/" not in self._card.model:  # A model of the hub is not there at all.
            lacks.add("completions")
        if self._card.api_style == "reasoning":
            lacks.add("logprobs")
        return lacks

    def key(self) -> dict[str, Any]:
        """Return the settings that answers depend on. The server is a digest, as a URL may contain secrets."""
        return {
            "backend": "openai",
            "model": self._card.model,
            "endpoint": self._endpoint.digest,
            "api_style": self._card.api_style,
            "thinking": self._card.thinking,
        }

    def varies(self, temperature: float | None) -> bool:
        """Return True, also at temperature 0: a server rounds differently with each batch of requests."""
        return True

    def answer(self, requests: Iterable[ChatRequest], done: Done) -> None:
        """Answer all requests. See Backend."""
        if not self._endpoint.url and "/" in self._card.model:  # The name is from the hub. OpenAI has no such model.
            raise UserError(
                f"{self._card.name} is not one of OpenAI's models; serve it, for example with `vllm serve "
                f"{self._card.model}`, and give its address with base_url (--base-url URL)",
            )
        key = self._endpoint.key() if self._needs_key or self._endpoint.has_key else ""
        endpoint = replace(self._endpoint, url=self._endpoint.url or OPENAI_URL)
        of_runtime = self._budget, self._without_schema
        call = _Call(self._card, endpoint, self._policy, *of_runtime, enumerate(requests), done)
        since, reason = self._dead.get(endpoint.digest, (-math.inf, ""))
        if time.monotonic() - since < DEAD_SECONDS:
            raise UserError(reason)
        warn_before_sending(endpoint, self._warned)
        try:
            run_sync(call.answer_all(key))
        except UserError as error:
            if call.unreachable:
                self._dead[endpoint.digest] = time.monotonic(), str(error)
            raise


@dataclass
class _Question:
    """One request on its way to an answer."""

    number: int
    request: ChatRequest
    attempts: int = 0
    delivered: bool = False
    estimated: bool = False
    """True if it was delivered before its bill arrived, with estimated tokens."""
    price: float = 0.0
    """Price of the delivered answer in dollars."""
    paid: float = 0.0
    """Price in dollars of the answer and of interrupted answers, because a provider bills everything that it wrote."""
    lost: tuple[int, int] = (0, 0)
    """Estimated tokens of interrupted answers: of the prompt and of the answer."""


@dataclass
class _Call:
    """One call of the backend, with all its questions."""

    card: LLMCard
    endpoint: Endpoint
    policy: Policy
    budget: Budget
    without_schema: set[tuple[str, str]]
    requests: Iterator[tuple[int, ChatRequest]]
    done: Done
    answered: bool = False
    """True if the endpoint has answered anything yet."""
    tells_usage: bool = True
    """True if it accepts `stream_options`. This is tried once, because old servers refuse it."""
    sends_schema: bool = False
    """True if it was sent the schema of an answer."""
    sends_tools: bool = False
    """True if it was sent tools."""
    counts_tokens: bool = True
    """True if it may count the tokens of a prompt. This is tried once, because few servers do."""
    unreachable: bool = False
    """True if the endpoint could not be reached and never answered."""
    silent: int = 0
    """Number of attempts without any response, before the first answer."""
    alike: tuple[str, int] = ("", 0)
    """Kind of the last failures of questions, and their number without an answer between them."""
    error: BaseException | None = None
    under_way: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer_all(self, key: str) -> None:
        """Ask all questions.

        After an error that affects all questions, nothing new is sent. Running requests finish, and then the error is
        raised.
        """
        self.limiter = AdaptiveLimiter(self.policy.concurrency)
        self.key = key
        async with Client(self.endpoint, self.policy.idle, key=key, refusal=self._refusal) as self.client:
            workers = [asyncio.create_task(self._work()) for _ in range(self.policy.concurrency)]
            try:
                await asyncio.wait(workers, timeout=NOTICE_SECONDS)
                if not self.answered and self.error is None and not all(worker.done() for worker in workers):
                    log.warning(
                        "%s has not answered within %g s; each attempt waits up to %g s for a byte; Ctrl-C stops",
                        self.endpoint.server,
                        NOTICE_SECONDS,
                        self.policy.idle,
                    )
                await asyncio.wait(workers)
            finally:
                for worker in workers:  # Some are not finished only after Ctrl-C.
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        if self.error is not None:
            raise self.error

    async def _work(self) -> None:
        try:
            while self.error is None and (taken := next(self.requests, None)) is not None:
                await self._ask(_Question(*taken))
        except Exception as error:
            self.error = self.error or error
            self.limiter.stop()

    async def _ask(self, question: _Question) -> None:
        reserved = dollars_at_most(self.card, question.request)
        if not await self._afford(reserved):
            self.done(question.number, Failure("budget", self.budget.refusal(reserved), attempts=0))
            return
        started = time.monotonic()
        try:
            outcome, attempts = await try_send(
                lambda: self._attempt(question), self.endpoint.server, self.policy, self.limiter, self._on_retry
            )
        finally:
            self.budget.settle(reserved, question.paid)
            self.under_way -= 1
            self.settled.set()
        if isinstance(outcome, RequestFailed) and not question.delivered:
            self._give_up_on_all(outcome, attempts)
            seconds = time.monotonic() - started
            too_long = outcome.kind == "context_length"
            fits = await self._share_that_fits(question.request, str(outcome)) if too_long else 0.0
            asked, written = question.lost
            usage = Usage(prompt_tokens=asked, completion_tokens=written, seconds=seconds, attempts=attempts).usage
            failure = Failure(outcome.kind, explained(outcome), fits, **usage)
            self.done(question.number, failure)

    async def _share_that_fits(self, request: ChatRequest, refusal: str) -> float:
        """Return the share of a refused prompt that would fit: the server says it, or counts the tokens; 0: unknown."""
        answer = request.sampling.max_tokens or self.card.max_tokens
        share = share_that_fits(refusal, answer)
        if share or not self.counts_tokens:
            return share
        # vLLM has this address beside /v1. The path of another server may be without /v1.
        counting = replace(self.endpoint, url=self.endpoint.url.removesuffix("/v1"))
        try:
            async with Client(counting, self.policy.idle, key=self.key) as client:
                share = counted_share(await client.post("/tokenize", count_body(self.card, request)), answer)
        except RequestFailed:
            pass
        self.counts_tokens = share > 0  # Otherwise the other prompts are shortened step by step.
        return share

    async def _afford(self, cost: float) -> bool:
        """Reserve the maximum cost of a request.

        If the budget is too small, wait, because running requests may cost less.
        """
        while not self.budget.reserve(cost):
            if not self.under_way:
                return False
            self.settled.clear()
            await self.settled.wait()
        self.under_way += 1
        return True

    def _on_retry(self, failure: RequestFailed) -> None:
        """Raise UserError if an endpoint has not responded to a dozen attempts and has never answered."""
        self.silent += failure.kind == "timeout"
        if self.silent >= _MAX_EQUAL_FAILURES and not self.answered:
            raise UserError(
                f"{failure}, {self.silent} times and without one answer; check that it is running. If the LLM "
                "needs longer for its first word, give a longer idle time"
            )

    def _give_up_on_all(self, failure: RequestFailed, attempts: int) -> None:
        """Raise UserError if the other questions would fail in the same way."""
        # A gateway may forbid one question (403), damage an answer or be unavailable for a while. So this applies only
        # if it never answered any question.
        never = not self.answered and (failure.kind in ("auth", "invalid") or failure.unreachable)
        self.unreachable = never and failure.unreachable
        if failure.for_all or never:
            hint = "; check that it is running and that the base URL is right" if failure.unreachable else ""
            raise given_up(failure, attempts, hint)
        kind, count = self.alike
        self.alike = (failure.kind, count + 1 if kind == failure.kind else 1)
        if self.alike[1] >= _MAX_EQUAL_FAILURES and failure.kind in _ENDPOINT_FAILURES:
            raise given_up(failure, attempts, f"; the last {_MAX_EQUAL_FAILURES} questions all failed like this")

    async def _attempt(self, question: _Question) -> None:
        """Send the question once and deliver its answer. Raises RequestFailed if there is no answer."""
        if question.delivered:  # Only the data after the answer took too long.
            return
        question.attempts += 1
        request = question.request
        reply = Reply(text_only=request.prompt is not None)
        started = time.monotonic()
        body = request_body(self.card, request)
        if self.tells_usage:
            body["stream_options"] = {"include_usage": True}
        if request.schema and (self.endpoint.digest, self.card.model) not in self.without_schema:
            body |= request.response_format
            self.sends_schema = True
        self.sends_tools = self.sends_tools or bool(request.tools)
        limit = request.sampling.max_tokens or self.card.max_tokens
        most = (16 << 20) + (limit << 10)  # A server sends about 300 bytes around each token.
        failure: RequestFailed | None = None
        try:
            path = "/chat/completions" if request.prompt is None else "/completions"
            await self.client.send(path, body, lambda answer: self._read(answer, question, reply, started), most)
        except RequestFailed as error:
            failure = error
        finally:
            if reply.began and not question.delivered and not reply.complete:
                self._count_lost(question, reply)
        # A complete answer counts, even if the connection broke before the bill.
        if reply.complete:
            self._deliver(question, reply, started)
        elif failure is not None and not question.delivered:
            raise failure

    async def _read(self, answer: HTTPAnswer, question: _Question, reply: Reply, started: float) -> None:
        try:
            if answer.is_json:  # The server does not stream.
                reply.take(await answer.read(), whole=True)
                if not reply.complete:
                    raise MalformedReply("without choices or finish_reason")
            else:
                await _read_stream(answer, reply, lambda: self._deliver(question, reply, started))
        except MalformedReply as error:
            # Once or twice may be a problem of a proxy. More often means a wrong address, and asking again would not
            # help.
            reason = f"{self.endpoint.server}: the answer is {error}; check the base URL"
            raise RequestFailed(reason, again=True, kind="invalid", max_attempts=3) from None
        except ErrorReply as error:
            raise self._refusal(self.endpoint, error.status, {}, error.body) from None
        if not reply.complete:
            raise RequestFailed(f"the answer of {self.endpoint.server} stopped half-way", again=True)
        self._deliver(question, reply, started)
        await answer.drain(_DRAIN_SECONDS)

    def _deliver(self, question: _Question, reply: Reply, started: float) -> None:
        """Deliver an answer, or deliver it again if its bill has arrived since."""
        if question.delivered and (not question.estimated or not reply.is_billed):
            return
        # Checked before it is saved, because the answer would be useless.
        if question.request.top_logprobs and not reply.has_logprobs:
            reason = f"{self.endpoint.server} reports no log-probabilities of tokens, and they are needed here"
            raise RequestFailed(f"{reason}; serve the model with vLLM or llama.cpp", again=False, for_all=True)
        answer = reply.answer(question.request, time.monotonic() - started)
        price = dollars(self.card, answer.prompt_tokens, answer.completion_tokens)
        question.paid += price - question.price
        question.price = price
        question.delivered, question.estimated = True, answer.estimated
        self.answered = True
        self.alike = ("", 0)
        self.done(question.number, replace(answer, attempts=question.attempts))

    def _count_lost(self, question: _Question, reply: Reply) -> None:
        prompt, completion = request_tokens(question.request), reply.written_tokens
        question.paid += dollars(self.card, prompt, completion)
        question.lost = (question.lost[0] + prompt, question.lost[1] + completion)

    def _refusal(self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
        """Return what an HTTP error means for this question and for all others."""
        # Several questions may be refused before the first refusal is understood. All of them are sent again.
        if status in (400, 422) and "stream_options" in body:
            self.tells_usage = False
            return RequestFailed(f"{endpoint.server} does not accept stream_options", again=True, retry_after=0.0)
        if status in (400, 422) and self.sends_schema and NO_SCHEMA_MESSAGE.search(body):
            if (model := (endpoint.digest, self.card.model)) not in self.without_schema:
                self.without_schema.add(model)
                log.warning(
                    "%s does not accept a JSON schema for %s; its answers are read without one "
                    "(json_schema = false in the card avoids this attempt)",
                    endpoint.server,
                    self.card.model,
                )
            return RequestFailed(f"{endpoint.server} does not accept response_format", again=True, retry_after=0.0)
        if self.sends_tools and (refused := tools_refused(endpoint, self.card.model, status, body)):
            return refused
        return answer_failure(endpoint, self.card.model, status, headers, body)


async def _read_stream(answer: HTTPAnswer, reply: Reply, deliver: Callable[[], None]) -> None:
    events = answer.events()
    await _take_events(events, reply, until_complete=True)
    if not reply.began:
        raise MalformedReply("neither JSON nor a stream of JSON")
    if reply.complete:
        deliver()  # Saved immediately, so that a later kill finds it in the journal. The bill follows.
        with suppress(TimeoutError):
            async with asyncio.timeout(_BILL_SECONDS):
                await _take_events(events, reply)


async def _take_events(events: AsyncIterator[bytes], reply: Reply, until_complete: bool = False) -> None:
    async for data in events:
        if data.strip() == b"[DONE]":
            return
        reply.take(data)
        if until_complete and reply.complete:
            return
