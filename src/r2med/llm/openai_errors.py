"""What an OpenAI-compatible endpoint's errors mean for a question, and for all the others."""

from __future__ import annotations

import re
from collections.abc import Mapping

from r2med.net import retry
from r2med.net.endpoint import Endpoint
from r2med.net.retry import RequestFailed, error_message

# As OpenAI, vLLM, llama.cpp, Ollama, DeepSeek, SGLang and Anthropic's gateway word it.
_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|(maximum|max|available|model'?s) context|context (length|window|size)"
    r"|max_model_len|(prompt|input)( \w+){0,3} too long|too many (input )?tokens|input length .* exceeds",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|\bmodel\b.{0,120}\b(not found|does not exist|not exist)|(unknown|no such) model", re.IGNORECASE
)
_REFUSED_SETTING = re.compile(
    r"unsupported (parameter|value)|unrecognized request argument|unknown (parameter|field|argument)"
    r"|extra (inputs|fields) (are )?not permitted",
    re.IGNORECASE,
)
"""A setting that the API does not take: OpenAI's reasoning models and Mistral say it so."""
_PATIENCE = 30
"""Attempts at a 429: to come back later is what the server asks for, so the deadline is to end it, not a count."""


def status_failure(where: Endpoint, model: str, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
    """Return what an HTTP error means."""
    failure = retry.status_failure(where, status, headers, body)
    if failure.for_all:
        return failure
    # 405 and 501: something that takes no questions at all.
    if status in (404, 405, 501) or (status in (400, 422) and _NO_MODEL.search(error_message(body))):
        reason = f"{failure} (asked for model {model!r}; is it one of this endpoint's, and the base URL right?)"
        return RequestFailed(reason, again=False, kind="bad_request", for_all=True)
    if status in (400, 413, 422, 500) and _TOO_LONG.search(body):  # llama.cpp has answered 500
        return RequestFailed(str(failure), again=False, kind="context_length")
    if status in (400, 422) and _REFUSED_SETTING.search(error_message(body)):
        # Every request has the same settings.
        reason = f"{failure} (settings are the LLM card's: one with api_style = reasoning sends no temperature)"
        return RequestFailed(reason, again=False, kind="bad_request", for_all=True)
    if failure.limited:
        failure.max_attempts = _PATIENCE
    return failure


def transport_failure(where: Endpoint, error: Exception, idle: float) -> RequestFailed | None:
    """Return what an exception of the SDK's HTTP library means; None for one that is not its.

    By name: that library is httpx or httpx2, by the SDK's version, and while a stream is read its exceptions come
    through as they are.
    """
    names = {kind.__name__ for link in (error, error.__cause__) if link for kind in type(link).__mro__}
    if names & {"ConnectError", "ConnectTimeout"}:
        reason = f"{dropped(where, error)}: is it running, and the base URL right?"
        return RequestFailed(reason, again=True, unreachable=True)
    if names & {"TimeoutException", "APITimeoutError"}:
        return RequestFailed(f"{where.server} was silent for {idle:g} s", again=True, kind="timeout")
    if names & {"RequestError", "StreamError", "APIConnectionError"}:
        return dropped(where, error)
    return None


def dropped(where: Endpoint, error: BaseException) -> RequestFailed:
    """Return what a connection that could not be made or broke off is."""
    cause = error.__cause__ or error
    return RequestFailed(f"the connection to {where.server} failed ({type(cause).__name__})", again=True)
