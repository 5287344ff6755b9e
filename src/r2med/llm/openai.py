"""LLMs behind an OpenAI-compatible endpoint: many questions at once, patiently, each answer handed on as it comes.

Read from top to bottom: the backend, one call of it, one question. What is sent and read is in `openai_protocol`.
Answers are streamed, so that a server that has stalled is told from one that is still writing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from r2med.core.errors import UserError
from r2med.llm.chat import ChatRequest, Failure, RawAnswer
from r2med.llm.costs import dollars, dollars_at_most, request_tokens
from r2med.llm.llm_cards import LLMCard
from r2med.llm.openai_protocol import NO_SCHEMA, ErrorReply, MalformedReply, Reply, answer_failure, request_body
from r2med.net.budget import Budget
from r2med.net.endpoint import Endpoint, endpoint_at
from r2med.net.http import Client, HTTPAnswer, run_sync
from r2med.net.retry import Policy, RequestFailed, explained, given_up, try_send
from r2med.net.throttle import AdaptiveLimiter
from r2med.runtime.runtime import Runtime

log = logging.getLogger("r2med")

OPENAI = "https://api.openai.com/v1"
_BILL = 5.0
"""Seconds for the bill after the end of an answer; then its tokens are counted roughly."""
_LAST_BYTES = 0.5
"""Seconds for what may follow the end of a stream, so that its connection can be used again."""
NOTICE_SECONDS = 15.0
"""Seconds without any answer after which a line says what is waited for."""
_DOZEN = 12
"""Failures alike, with no answer between them, after which an endpoint is given up."""
_OF_THE_ENDPOINT = ("timeout", "connection", "rate_limit", "server", "auth", "invalid")
"""Kinds of failures that are no question's own."""

Done = Callable[[int, RawAnswer | Failure], None]


class OpenAIBackend:
    """An endpoint as a backend."""

    def __init__(self, card: LLMCard, runtime: Runtime) -> None:
        self._card = card
        of_environment = "" if card.base_url or card.api_key_env != "OPENAI_API_KEY" else "OPENAI_BASE_URL"
        given = runtime.setup.base_url or os.environ.get(of_environment, "").strip()
        endpoint = endpoint_at(given or card.base_url, card.name, card.api_key_env)
        # OpenAI's own address is the same as none, under which its answers are journaled.
        self._endpoint = replace(endpoint, url="") if endpoint.url == OPENAI else endpoint
        self.is_local = endpoint.is_local
        # The known providers always want a key; servers of one's own seldom do.
        known = not self._endpoint.url or (not given and card.api_key_env != "OPENAI_API_KEY")
        self._needs_key = known and not self.is_local
        self._policy = runtime.setup.policy
        self._budget = runtime.budget
        # Endpoints and their models that refused the schema of an answer: tried once, and noticed once.
        self._without_schema: set[tuple[str, str]] = runtime.opened("LLMs without a schema", set).value
        if runtime.budget.limit is not None and "price" not in card.model_fields_set and not self.is_local:
            raise UserError(
                f"{card.name} has no price in its card, so no budget can be kept: "
                "add it (0 where it is free), or run without a budget"
            )

    def describe(self) -> dict[str, Any]:
        """Return what answers depend on here; the server only as a hash, since a URL may hold secrets."""
        return {
            "backend": "openai",
            "model": self._card.model,
            "endpoint": self._endpoint.identity,
            "api_style": self._card.api_style,
            "thinking": self._card.thinking,
        }

    def answer(self, requests: Iterable[ChatRequest], done: Done) -> None:
        """Answer all requests; see Backend."""
        if not self._endpoint.url and "/" in self._card.model:  # a name of the hub's: OpenAI has none like it
            raise UserError(
                f"{self._card.name} is not one of OpenAI's models: serve it, for instance by "
                f"`vllm serve {self._card.model}`, and say where with --base-url URL"
            )
        key = self._endpoint.key() if self._needs_key or self._endpoint.has_key else ""
        endpoint = replace(self._endpoint, url=self._endpoint.url or OPENAI)
        of_runtime = self._budget, self._without_schema
        call = _Call(self._card, endpoint, self._policy, *of_runtime, enumerate(requests), done)
        run_sync(call.answer_all(key))


@dataclass
class _Question:
    """One request on its way to an answer."""

    number: int
    request: ChatRequest
    attempts: int = 0
    delivered: bool = False
    estimated: bool = False
    """True if it was delivered before its bill came, with tokens that were counted roughly."""
    price: float = 0.0
    """Dollars of the answer that was delivered."""
    paid: float = 0.0
    """Dollars of the answer, and of those that broke off: what a provider wrote it bills."""
    lost: tuple[int, int] = (0, 0)
    """Tokens of answers that broke off: of the prompt, of the answer; counted roughly."""


@dataclass
class _Call:
    """One call of the backend: all its questions."""

    card: LLMCard
    endpoint: Endpoint
    policy: Policy
    budget: Budget
    without_schema: set[tuple[str, str]]
    requests: Iterator[tuple[int, ChatRequest]]
    done: Done
    answered: bool = False
    """Whether the endpoint has answered anything yet."""
    tells_usage: bool = True
    """Whether it takes `stream_options`; asked once, since old servers refuse it."""
    sends_schema: bool = False
    """Whether it was sent the schema of an answer."""
    silent: int = 0
    """Attempts that met with silence, before anything was answered."""
    alike: tuple[str, int] = ("", 0)
    """The kind of the last failures of questions, and how many there were without an answer between them."""
    error: BaseException | None = None
    under_way: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer_all(self, key: str) -> None:
        """Ask everything. After an error that all would meet nothing new is sent, what is under way comes in, and then
        the error is raised.
        """
        self.limiter = AdaptiveLimiter(self.policy.concurrency)
        async with Client(self.endpoint, self.policy.idle, key=key, refusal=self._refusal) as self.client:
            workers = [asyncio.create_task(self._work()) for _ in range(self.policy.concurrency)]
            try:
                await asyncio.wait(workers, timeout=NOTICE_SECONDS)
                if not self.answered and self.error is None and not all(worker.done() for worker in workers):
                    log.warning(
                        "%s has not answered within %g s: waiting, up to %g s of silence an attempt; Ctrl-C stops",
                        self.endpoint.server,
                        NOTICE_SECONDS,
                        self.policy.idle,
                    )
                await asyncio.wait(workers)
            finally:
                for worker in workers:  # only after Ctrl-C is any of them not done
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
            failure = Failure(outcome.kind, explained(outcome), attempts, *question.lost, seconds=seconds)
            self.done(question.number, failure)

    async def _afford(self, cost: float) -> bool:
        """Set the most that a request may cost aside; what is under way may cost less than was set aside for it."""
        while not self.budget.reserve(cost):
            if not self.under_way:
                return False
            self.settled.clear()
            await self.settled.wait()
        self.under_way += 1
        return True

    def _on_retry(self, failure: RequestFailed) -> None:
        """Raise UserError if an endpoint has been silent to a dozen attempts and has never answered."""
        self.silent += failure.kind == "timeout"
        if self.silent >= _DOZEN and not self.answered:
            raise UserError(
                f"{failure}, {self.silent} times and without one answer: is it running, and does the LLM write its "
                "first word sooner? (where it thinks longer in silence, give a longer idle time)"
            )

    def _give_up_on_all(self, failure: RequestFailed, attempts: int) -> None:
        """Raise UserError if the other questions would fail like this one."""
        # A gateway may forbid one question (403), garble an answer or be away for a while: so only when it never
        # answered any.
        never = not self.answered and (failure.kind in ("auth", "invalid") or failure.unreachable)
        if failure.for_all or never:
            hint = ": is it running, and the base URL right?" if failure.unreachable else ""
            raise given_up(failure, attempts, hint)
        kind, count = self.alike
        self.alike = (failure.kind, count + 1 if kind == failure.kind else 1)
        if self.alike[1] >= _DOZEN and failure.kind in _OF_THE_ENDPOINT:
            raise given_up(failure, attempts, f": the last {_DOZEN} questions all failed like this")

    async def _attempt(self, question: _Question) -> None:
        """Send the question once and deliver its answer. Raises RequestFailed if none came."""
        if question.delivered:  # and only what followed it took too long
            return
        question.attempts += 1
        request = question.request
        reply = Reply(text_only=request.prompt is not None)
        started = time.monotonic()
        body = request_body(self.card, request)
        if self.tells_usage:
            body["stream_options"] = {"include_usage": True}
        if request.schema and (self.endpoint.identity, self.card.model) not in self.without_schema:
            body |= request.response_format
            self.sends_schema = True
        limit = request.sampling.max_tokens or self.card.max_tokens
        most = (16 << 20) + (limit << 10)  # a server sends some 300 bytes around each token
        failure: RequestFailed | None = None
        try:
            path = "/chat/completions" if request.prompt is None else "/completions"
            await self.client.send(path, body, lambda answer: self._read(answer, question, reply, started), most)
        except RequestFailed as error:
            failure = error
        finally:
            if reply.began and not question.delivered and not reply.complete:
                self._count_lost(question, reply)
        # An answer that came whole is one, even if the connection broke before the bill.
        if reply.complete:
            self._deliver(question, reply, started)
        elif failure is not None and not question.delivered:
            raise failure

    async def _read(self, answer: HTTPAnswer, question: _Question, reply: Reply, started: float) -> None:
        try:
            if answer.is_json:  # a server that does not stream
                reply.take(await answer.read(), whole=True)
                if not reply.complete:
                    raise MalformedReply("without choices or finish_reason")
            else:
                await _read_stream(answer, reply, lambda: self._deliver(question, reply, started))
        except MalformedReply as error:
            # Once or twice is a proxy's hiccup; more is a wrong address, and asking on would not help.
            reason = f"{self.endpoint.server}: the answer is {error}: is the base URL right?"
            raise RequestFailed(reason, again=True, kind="invalid", max_attempts=3) from None
        except ErrorReply as error:
            raise self._refusal(self.endpoint, error.status, {}, error.body) from None
        if not reply.complete:
            raise RequestFailed(f"the answer of {self.endpoint.server} stopped half-way", again=True)
        self._deliver(question, reply, started)
        await answer.drain(_LAST_BYTES)

    def _deliver(self, question: _Question, reply: Reply, started: float) -> None:
        """Hand an answer over; once more if its bill has come since."""
        if question.delivered and (not question.estimated or not reply.is_billed):
            return
        if question.request.top_logprobs and not reply.has_logprobs:  # before it is kept: it would be of no use
            reason = f"{self.endpoint.server} reports no log-probabilities of tokens, and they are needed here"
            raise RequestFailed(f"{reason}: serve the model with vLLM or llama.cpp", again=False, for_all=True)
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
        """Return what an HTTP error means for this question, and for all the others."""
        # Several questions may be refused before the first refusal is understood: all of them are sent again.
        if status in (400, 422) and "stream_options" in body:
            self.tells_usage = False
            return RequestFailed(f"{endpoint.server} takes no stream_options", again=True, retry_after=0.0)
        if status in (400, 422) and self.sends_schema and NO_SCHEMA.search(body):
            if (model := (endpoint.identity, self.card.model)) not in self.without_schema:
                self.without_schema.add(model)
                log.warning(
                    "%s takes no JSON schema for %s: its answers are read as they come (json_schema = false in the "
                    "card does not try)",
                    endpoint.server,
                    self.card.model,
                )
            return RequestFailed(f"{endpoint.server} takes no response_format", again=True, retry_after=0.0)
        return answer_failure(endpoint, self.card.model, status, headers, body)


async def _read_stream(answer: HTTPAnswer, reply: Reply, deliver: Callable[[], None]) -> None:
    events = answer.events()
    await _take_events(events, reply, until_complete=True)
    if not reply.began:
        raise MalformedReply("neither JSON nor a stream of it")
    if reply.complete:
        deliver()  # kept at once: a kill from here on finds it in the journal. What follows is the bill
        with suppress(TimeoutError):
            async with asyncio.timeout(_BILL):
                await _take_events(events, reply)


async def _take_events(events: AsyncIterator[bytes], reply: Reply, until_complete: bool = False) -> None:
    async for data in events:
        if data.strip() == b"[DONE]":
            return
        reply.take(data)
        if until_complete and reply.complete:
            return
