"""The providers: how each one's SDK is called, its limits and its tokenizer.

The SDKs' own retries are off: theirs know no deadline, no budget and no Ctrl-C.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from r2med.encoders.api.tokens import Tokenizer, load_tiktoken, load_voyage
from r2med.errors import MissingExtraError, UserError
from r2med.net.endpoint import Endpoint
from r2med.net.retry import Policy, RequestFailed, status_failure

Send = Callable[[Sequence[str]], Awaitable[Any]]
"""Send texts; return the answer's JSON; raise RequestFailed."""


@dataclass(frozen=True)
class Provider:
    """All that differs between providers."""

    name: str
    key_variable: str
    url_variable: str
    texts_per_request: int
    tokens_per_request: int
    overhead: int
    """Tokens that a provider may add to a text."""
    load_tokenizer: Callable[[str], Tokenizer]
    connect: Callable[[Endpoint, str, str, Policy], AbstractAsyncContextManager[Send]]
    """(where, model, input type, patience) -> a way to send."""


@asynccontextmanager
async def _openai(where: Endpoint, model: str, input_type: str, policy: Policy) -> AsyncIterator[Send]:
    try:
        import openai
    except ImportError:
        raise MissingExtraError(f"the model {model}", "api") from None
    client = openai.AsyncOpenAI(
        api_key=where.key(),
        base_url=where.url or "https://api.openai.com/v1",
        max_retries=0,
        timeout=openai.Timeout(policy.idle, connect=min(20.0, policy.idle), pool=None),
    )

    async def send(texts: Sequence[str]) -> Any:
        try:
            # The raw answer, because the SDK takes whatever comes for an embedding.
            raw = await client.embeddings.with_raw_response.create(
                model=model, input=list(texts), encoding_format="base64"
            )
            return _json(raw.content, where)
        except openai.APIStatusError as error:
            failure = status_failure(where, error.status_code, error.response.headers, error.response.text)
        except openai.APITimeoutError:
            failure = _stalled(where, policy.idle)
        except openai.APIConnectionError as error:
            failure = _dropped(where, error)
        raise failure

    async with client:
        yield send


@asynccontextmanager
async def _voyage(where: Endpoint, model: str, input_type: str, policy: Policy) -> AsyncIterator[Send]:
    try:
        import aiohttp

        voyageai: Any = import_module("voyageai")  # its types do not export what it documents
    except ImportError:
        raise MissingExtraError(f"the model {model}", "api") from None
    settings: dict[str, Any] = {"model": model, "truncation": False}  # by default it shortens without a word
    settings |= {"encoding_format": "base64", "input_type": input_type or None}
    # The SDK has no idle timeout, only one for the whole of an attempt.
    settings |= {"api_key": where.key(), "base_url": where.url or None, "request_timeout": policy.idle}

    async def check(response: aiohttp.ClientResponse) -> None:
        # Before the SDK sees it: it drops Retry-After where the body has no `detail`, takes a 529 for an answer,
        # and logs error bodies, which may hold the key.
        body = await response.read()
        if response.status >= 300:
            raise status_failure(where, response.status, response.headers, body.decode(errors="replace"))
        _json(body, where)

    async def send(texts: Sequence[str]) -> Any:
        try:
            # Not Client.embed: it forgets the rows' indices.
            return await voyageai.Embedding.acreate(input=list(texts), **settings)
        except RequestFailed as error:
            failure = RequestFailed(str(error), again=error.again, limited=error.limited, retry_after=error.retry_after)
        except voyageai.error.Timeout:
            failure = _stalled(where, policy.idle)
        except voyageai.error.APIConnectionError as error:
            failure = _dropped(where, error)
        raise failure

    async with aiohttp.ClientSession(raise_for_status=check, trust_env=True) as session:
        voyageai.aiosession.set(session)  # a context variable: seen by our tasks only
        yield send


def _stalled(where: Endpoint, idle: float) -> RequestFailed:
    return RequestFailed(f"{where.server} was silent for {idle:g} s", again=True, kind="timeout")


def _dropped(where: Endpoint, error: BaseException) -> RequestFailed:
    cause = error.__cause__ or error
    return RequestFailed(f"the connection to {where.server} failed ({type(cause).__name__})", again=True)


def _json(body: str | bytes, where: Endpoint) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    raise UserError(f"{where.server}: the answer is not JSON: is the base URL right?")


# Requests are kept well below what is allowed (OpenAI: 2,048 texts and 300,000 tokens; Voyage: 1,000 and 120,000):
# eight at a time saturate either, and what a kill, a retry or a 429 costs is one request.
PROVIDERS = {
    "openai": Provider("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL", 256, 100_000, 0, load_tiktoken, _openai),
    # Voyage puts a sentence before a text that has an input type.
    "voyage": Provider("voyage", "VOYAGE_API_KEY", "VOYAGE_BASE_URL", 128, 60_000, 16, load_voyage, _voyage),
}
