"""LLMs behind an OpenAI-compatible endpoint. Many questions are sent at once, and each answer is passed on immediately.

Read from top to bottom: the backend, one call of it, one question. `openai_protocol` builds requests and parses
answers. Answers are streamed, which distinguishes a stalled server from one that is still writing.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.budget import Budget
from r2med.foundation.net.endpoint import Endpoint, endpoint_at, warn_before_sending
from r2med.foundation.net.http import Client, HTTPAnswer, RequestFailed, run_sync
from r2med.foundation.net.request_loop import Policy, Request, RequestLoop
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.chat import Ability, ChatRequest, Failure, RawAnswer, Usage
from r2med.models.llm.costs import dollars, dollars_at_most, request_tokens
from r2med.models.llm.llm_cards import LLMCard, given_address
from r2med.models.llm.openai_protocol import (
    NO_SCHEMA_MESSAGE,
    ErrorReply,
    MalformedReply,
    Reply,
    Sizes,
    answer_failure,
    count_body,
    counted_sizes,
    request_body,
    stated_sizes,
    tools_refused,
)

log = logging.getLogger("r2med")

OPENAI_URL = "https://api.openai.com/v1"
_BILL_SECONDS = 5.0
"""Seconds to wait for the bill after the end of an answer. Then its tokens are estimated."""
_DRAIN_SECONDS = 0.5
"""Seconds to wait for the rest of a stream, so that its connection can be used again."""
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
        given = given_address(card, runtime.setup)
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
        # The most tokens of an answer, by endpoint and model, for servers with a small context.
        self._most_tokens: dict[tuple[str, str], int] = runtime.opened("limits of answers", dict)
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
        since, reason = self._dead.get(endpoint.digest, (-math.inf, ""))
        if time.monotonic() - since < DEAD_SECONDS:
            raise UserError(reason)
        warn_before_sending(endpoint, self._warned)
        learned = self._without_schema, self._most_tokens
        call = _Call(self._card, endpoint, key, self._policy, self._budget, *learned, done)
        questions = (_Question(number, request) for number, request in enumerate(requests))
        try:
            unsent = run_sync(call.run(questions))
        except UserError as error:
            if call.unreachable:
                self._dead[endpoint.digest] = time.monotonic(), str(error)
            raise
        for question in unsent:
            reason = self._budget.refusal(dollars_at_most(self._card, question.request))
            done(question.number, Failure("budget", reason, attempts=0))


@dataclass
class _Question:
    """One request on its way to an answer."""

    number: int
    request: ChatRequest
    answer: RawAnswer | None = None
    """The delivered answer. Its tokens are estimated until its bill arrives."""
    fits: float = 0.0
    """Share of a prompt that would fit, if it was too long and the server says by how much."""
    lost: tuple[int, int] = (0, 0)
    """Estimated tokens of interrupted answers: of the prompt and of the answer."""


class _Call(RequestLoop[_Question, None]):
    """One call of the backend, with all its questions."""

    def __init__(
        self,
        card: LLMCard,
        endpoint: Endpoint,
        key: str,
        policy: Policy,
        budget: Budget,
        without_schema: set[tuple[str, str]],
        most_tokens: dict[tuple[str, str], int],
        done: Done,
    ) -> None:
        super().__init__(Client(endpoint, policy.idle, key=key, refusal=self._refusal), policy, budget)
        self._card = card
        self._key = key
        self._without_schema = without_schema
        self._most_tokens = most_tokens
        self._done = done
        self._tells_usage = True
        """True if the server accepts `stream_options`. This is tried once, because old servers refuse it."""
        self._sends_schema = False
        """True if it was sent the schema of an answer."""
        self._sends_tools = False
        """True if it was sent tools."""
        self._counts_tokens = True
        """True if it may count the tokens of a prompt. This is tried once, because few servers do."""
        self.unreachable = False
        """True if the endpoint could not be reached and never answered."""
        self._silent = 0
        """Number of attempts without any response, before the first answer."""
        self._alike: tuple[str, int] = ("", 0)
        """Kind of the last failures of questions, and their number without an answer between them."""

    def price(self, item: _Question) -> float:
        """Return the most dollars that an answer may cost."""
        return dollars_at_most(self._card, item.request)

    async def finish(self, request: Request[_Question], outcome: RequestFailed | None) -> None:
        """Deliver the failure of a question that got no answer."""
        question = request.item
        if outcome is None or question.answer is not None:
            return
        self._give_up_on_all(outcome, request.attempts)
        asked, written = question.lost
        usage = Usage(
            prompt_tokens=asked, completion_tokens=written, seconds=request.seconds, attempts=request.attempts
        ).usage
        self._done(question.number, Failure(outcome.kind, f"{outcome}{outcome.wish}", question.fits, **usage))

    async def _fit(self, question: _Question, refusal: RequestFailed, limit: int) -> RequestFailed:
        """Note the share of a refused prompt that would fit. If no prompt leaves room for an answer, limit the answers.

        The limit of a card may be larger than the context of the server, above all if the server has no card. `limit`
        is what was sent.
        """
        sizes = stated_sizes(str(refusal))
        if not all(sizes) and self._counts_tokens:
            sizes = await self._counted(question.request) or sizes
        question.fits = sizes.share(limit)
        if not 0 < sizes.context <= limit:
            return refusal
        server, model = self.client.endpoint.server, self._card.model
        most = max(1, sizes.context // 2)
        if self._most_tokens.get((self.client.endpoint.digest, model)) != most:  # not yet by another question
            self._most_tokens[self.client.endpoint.digest, model] = most
            text = "%s has a context of %s tokens, so answers of %s end at %s tokens (max_tokens in a card sets this)"
            log.warning(text, server, f"{sizes.context:,}", model, f"{most:,}")
        return RequestFailed(f"{server} has a smaller context", again=True, kind="context_length", retry_after=0.0)

    async def _counted(self, request: ChatRequest) -> Sizes | None:
        """Return the sizes that a server counts, or None if it cannot."""
        # vLLM has this address beside /v1. The path of another server may be without /v1.
        counting = replace(self.client.endpoint, url=self.client.endpoint.url.removesuffix("/v1"))
        try:
            async with Client(counting, self.policy.idle, key=self._key) as client:
                sizes = counted_sizes(await client.post("/tokenize", count_body(self._card, request)))
        except RequestFailed:
            sizes = Sizes()
        self._counts_tokens = all(sizes)  # Otherwise the other prompts are shortened step by step.
        return sizes if self._counts_tokens else None

    def _answer_tokens(self, request: ChatRequest) -> int:
        """Return the most tokens of an answer: as the request or the card says, and as this server can hold."""
        limit = request.sampling.max_tokens or self._card.max_tokens
        return min(limit, self._most_tokens.get((self.client.endpoint.digest, self._card.model), limit))

    def before_retry(self, failure: RequestFailed) -> None:
        """Raise UserError if an endpoint has not responded to a dozen attempts and has never answered."""
        self._silent += failure.kind == "timeout"
        if self._silent >= _MAX_EQUAL_FAILURES and not self.answered:
            raise UserError(
                f"{failure}, {self._silent} times and without one answer; check that it is running. If the LLM "
                "needs longer for its first word, give a longer idle time"
            )

    def _give_up_on_all(self, failure: RequestFailed, attempts: int) -> None:
        """Raise UserError if the other questions would fail in the same way."""
        # A gateway may forbid one question (403), damage an answer or be unavailable for a while. So this applies only
        # if it never answered any question.
        never = not self.answered and (failure.kind in ("auth", "invalid") or failure.unreachable)
        self.unreachable = never and failure.unreachable
        if failure.for_all or never:
            raise failure.given_up(attempts)
        kind, count = self._alike
        self._alike = (failure.kind, count + 1 if kind == failure.kind else 1)
        if self._alike[1] >= _MAX_EQUAL_FAILURES and failure.kind in _ENDPOINT_FAILURES:
            raise failure.given_up(attempts, f"; the last {_MAX_EQUAL_FAILURES} questions all failed like this")

    async def attempt(self, request: Request[_Question]) -> None:
        """Send the question once and deliver its answer. Raises RequestFailed if there is no answer."""
        question = request.item
        if question.answer is not None:  # Only the data after the answer took too long.
            return
        reply = Reply(text_only=question.request.prompt is not None)
        started = time.monotonic()
        limit = self._answer_tokens(question.request)
        most = (16 << 20) + (limit << 10)  # A server sends about 300 bytes around each token.
        failure: RequestFailed | None = None
        try:
            path = "/chat/completions" if question.request.prompt is None else "/completions"
            body = self._body(question.request)
            await self.client.send(path, body, lambda answer: self._read(answer, request, reply, started), most)
        except RequestFailed as error:
            failure = await self._fit(question, error, limit) if error.kind == "context_length" else error
        finally:
            if reply.began and question.answer is None and not reply.complete:
                self._count_lost(request, reply)
        # A complete answer counts, even if the connection broke before the bill.
        if reply.complete:
            self._deliver(request, reply, started)
        elif failure is not None and question.answer is None:
            raise failure

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        """Return the body of a request, with what this server accepts."""
        most = self._answer_tokens(request)
        if most < (request.sampling.max_tokens or self._card.max_tokens):
            request = replace(request, sampling=replace(request.sampling, max_tokens=most))
        body = request_body(self._card, request)
        if self._tells_usage:
            body["stream_options"] = {"include_usage": True}
        if request.schema and (self.client.endpoint.digest, self._card.model) not in self._without_schema:
            body |= request.response_format
            self._sends_schema = True
        self._sends_tools = self._sends_tools or bool(request.tools)
        return body

    async def _read(self, answer: HTTPAnswer, request: Request[_Question], reply: Reply, started: float) -> None:
        server = self.client.endpoint.server
        try:
            if answer.is_json:  # The server does not stream.
                reply.take(await answer.read(), whole=True)
                if not reply.complete:
                    raise MalformedReply("without choices or finish_reason")
            else:
                await _read_stream(answer, reply, lambda: self._deliver(request, reply, started))
        except MalformedReply as error:
            # Once or twice may be a problem of a proxy. More often means a wrong address, and asking again would not
            # help.
            reason = f"{server}: the answer is {error}; check the base URL"
            raise RequestFailed(reason, again=True, kind="invalid", max_attempts=3) from None
        except ErrorReply as error:
            raise self._refusal(self.client.endpoint, error.status, {}, error.body) from None
        if not reply.complete:
            raise RequestFailed(f"the answer of {server} stopped half-way", again=True)
        self._deliver(request, reply, started)
        await answer.drain(_DRAIN_SECONDS)

    def _deliver(self, request: Request[_Question], reply: Reply, started: float) -> None:
        """Deliver an answer, or deliver it again if its bill has arrived since."""
        question = request.item
        if question.answer is not None and (not question.answer.estimated or not reply.is_billed):
            return
        # Checked before it is saved, because the answer would be useless.
        if question.request.top_logprobs and not reply.has_logprobs:
            reason = f"{self.client.endpoint.server} reports no log-probabilities of tokens, and they are needed here"
            raise RequestFailed(f"{reason}; serve the model with vLLM or llama.cpp", again=False, for_all=True)
        answer = replace(reply.answer(question.request, time.monotonic() - started), attempts=request.attempts)
        if question.answer is not None:
            request.dollars -= self._dollars(question.answer)
        request.dollars += self._dollars(answer)
        question.answer = answer
        self.answered = True
        self._alike = ("", 0)
        self._done(question.number, answer)

    def _dollars(self, answer: RawAnswer) -> float:
        return dollars(self._card, answer.prompt_tokens, answer.completion_tokens)

    def _count_lost(self, request: Request[_Question], reply: Reply) -> None:
        """Count an interrupted answer, because a provider bills everything that it wrote."""
        prompt, completion = request_tokens(request.item.request), reply.written_tokens
        request.dollars += dollars(self._card, prompt, completion)
        lost_prompt, lost_completion = request.item.lost
        request.item.lost = lost_prompt + prompt, lost_completion + completion

    def _refusal(self, endpoint: Endpoint, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
        """Return what an HTTP error means for this question and for all others."""
        # Several questions may be refused before the first refusal is understood. All of them are sent again.
        if status in (400, 422) and "stream_options" in body:
            self._tells_usage = False
            return RequestFailed(f"{endpoint.server} does not accept stream_options", again=True, retry_after=0.0)
        if status in (400, 422) and self._sends_schema and NO_SCHEMA_MESSAGE.search(body):
            if (model := (endpoint.digest, self._card.model)) not in self._without_schema:
                self._without_schema.add(model)
                log.warning(
                    "%s does not accept a JSON schema for %s; its answers are read without one "
                    "(json_schema = false in the card avoids this attempt)",
                    endpoint.server,
                    self._card.model,
                )
            return RequestFailed(f"{endpoint.server} does not accept response_format", again=True, retry_after=0.0)
        if self._sends_tools and (refused := tools_refused(endpoint, self._card.model, status, body)):
            return refused
        return answer_failure(endpoint, self._card.model, status, headers, body)


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
