"""Send HTTP requests to one endpoint. Its answers are not trusted: time and size are limited.

httpx2 is used directly. The SDK of a provider has its own retries, without a deadline, an adaptive limit and Ctrl-C. It
also has its own error classes, and takes more time per answer than all the code here.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import math
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urljoin, urlsplit

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import Endpoint

if TYPE_CHECKING:
    import ssl

    import httpx2

T = TypeVar("T")

Kind = Literal["timeout", "connection", "rate_limit", "server", "bad_request", "auth", "context_length", "invalid"]
"""The kinds of failures of a request."""

MAX_BYTES = 64 << 20
"""Maximum size of an unpacked answer in bytes, several times the longest answer of a model."""
_ERROR_BYTES = 64 << 10
"""Number of bytes that are read of the body of an error. One line of it is shown."""
_PACKED = ("gzip", "deflate")
"""Encodings that are unpacked although they were not requested. httpx2 unpacks them in bounded pieces. With other
or nested encodings a piece may unpack to gigabytes."""


class RequestFailed(Exception):  # noqa: N818 - reads as what happened
    """A request without an answer. Its text can be shown to a user: one line with the server and without secrets."""

    def __init__(
        self,
        reason: str,
        *,
        again: bool,
        kind: Kind = "connection",
        retry_after: float | None = None,
        max_attempts: int = 0,
        for_all: bool = False,
        unreachable: bool = False,
    ) -> None:
        super().__init__(reason)
        self.again = again
        """True if the same request may succeed later."""
        self.kind: Kind = kind
        self.retry_after = retry_after
        self.max_attempts = max_attempts
        """Number of attempts for this kind of failure. 0 means that of the policy."""
        self.for_all = for_all
        """True if all other requests would fail in the same way, because of the key, the model or the account."""
        self.unreachable = unreachable
        """True if no connection could be made."""

    @property
    def wish(self) -> str:
        """The wait that the server asks for, as the end of a sentence."""
        return f"; it asks to wait {self.retry_after:.0f} s" if self.retry_after else ""

    def given_up(self, attempts: int, hint: str = "") -> UserError:
        """Return the error of a command that ends, with the number of attempts and what helps."""
        if self.unreachable:
            hint = hint or "; check that it is running and that the base URL is right"
        tried = f" ({attempts} attempts)" if attempts > 1 else ""
        # An invalid answer comes from a wrong address, so the same command would fail again.
        may_pass = self.again and self.kind != "invalid"
        later = "; paid answers are saved; run again to continue" if may_pass else ""
        return UserError(f"{self}{hint}{tried}{self.wish}{later}")


# Keys are (status, True if a key was sent).
_AUTH = {
    (401, True): "refuses the key in {variable}",
    (401, False): "needs a key; set the environment variable {variable}",
    (403, True): "forbids the request to the key in {variable}",
    (403, False): "forbids the request, which had no key; {variable} is not set",
}
_MARKUP = re.compile(r"\s*<(!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


def status_failure(endpoint: Endpoint, status: int, headers: Mapping[str, str], body: str) -> RequestFailed:
    """Return the failure that an HTTP status means, which may pass or is final."""
    if (status, endpoint.has_key) in _AUTH:
        # The body is not shown, because servers may repeat a part of the key in it.
        reason = f"{_AUTH[status, endpoint.has_key].format(variable=endpoint.key_variable)} (HTTP {status})"
        return RequestFailed(f"{endpoint.server} {reason}", again=False, kind="auth", for_all=status == 401)
    kind: Kind = "server" if status >= 500 or status == 409 else "bad_request"
    if status in (408, 429):
        kind = "timeout" if status == 408 else "rate_limit"
    # OpenAI reports an account without money as 429, and waiting does not help.
    no_money = status == 429 and "insufficient_quota" in body
    again = kind != "bad_request" and not no_money
    wait = retry_after(headers) if again else None
    message = endpoint.hide(error_message(body))
    reason = f"{endpoint.server} answered HTTP {status}{': ' if message else ''}{message}"
    return RequestFailed(reason, again=again, kind=kind, retry_after=wait, for_all=no_money)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the requested wait in seconds, from milliseconds (OpenAI), seconds or an HTTP date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        with contextlib.suppress(ValueError):
            seconds = float(headers.get(name) or "nan") / unit
            if math.isfinite(seconds):
                return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after") or "").timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def error_message(body: str) -> str:
    """Return the readable message of an error body. For an HTML page, as proxies send, it is the title."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        if not _MARKUP.match(body):
            return body
        title = _TITLE.search(body)
        return html.unescape(title[1]) if title else ""
    for name in ("error", "detail", "message"):
        if isinstance(content, dict) and content.get(name):
            content = content[name]
    return content if isinstance(content, str) else json.dumps(content)


Refusal = Callable[[Endpoint, int, Mapping[str, str], str], RequestFailed]
"""Turns (endpoint, status, headers, body) of an error into the failure that it means."""


class Client:
    """A client of one endpoint. Use it in `async with`, inside one event loop."""

    def __init__(self, endpoint: Endpoint, idle: float, *, key: str = "", refusal: Refusal = status_failure) -> None:
        """Prepare the client. If no byte arrives for `idle` seconds, the request fails."""
        self.endpoint = endpoint
        self._idle = idle
        self._headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "r2med"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._refusal = refusal
        self._connections: list[httpx2.AsyncClient] = []
        self._free: list[httpx2.AsyncClient] = []

    async def __aenter__(self) -> Client:
        self._free.append(self._connect())  # so that an unusable proxy is reported before anything is sent
        return self

    async def __aexit__(self, *error: object) -> None:
        for connection in self._connections:
            await connection.aclose()

    async def post(self, path: str, body: Mapping[str, Any], max_bytes: int = MAX_BYTES) -> bytes:
        """Return the body of the answer. Raises RequestFailed."""
        return await self.send(path, body, HTTPAnswer.read, max_bytes)

    async def send(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[HTTPAnswer], Awaitable[T]],
        max_bytes: int = MAX_BYTES,
    ) -> T:
        """Send JSON to the endpoint's URL + path and return the result of `read(answer)`. Raises RequestFailed.

        `read` is called for statuses of success only, and may raise RequestFailed itself.
        """
        import httpx2

        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        # One client per connection: for each request, httpx2's pool examines all its connections. With 64 requests at
        # once this takes twice as long as everything else. The client used last is taken first.
        connection = self._free.pop() if self._free else self._connect()
        try:
            async with connection.stream("POST", f"{self.endpoint.url}{path}", content=content) as response:
                answer = HTTPAnswer(response, self.endpoint, max_bytes)
                if not response.is_success:
                    raise await self._refused(answer)
                return await read(answer)
        except (httpx2.TransportError, httpx2.StreamError, httpx2.DecodingError) as error:
            unreachable = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            if isinstance(error, httpx2.TimeoutException) and not unreachable:
                reason = f"{self.endpoint.server} was silent for {self._idle:g} s"
                failure = RequestFailed(reason, again=True, kind="timeout")
            else:
                reason = f"the connection to {self.endpoint.server} failed ({type(error).__name__})"
                failure = RequestFailed(reason, again=True, unreachable=unreachable)
        finally:
            self._free.append(connection)
        raise failure  # outside of `except`, whose exception would hold the request and with it the key

    async def _refused(self, answer: HTTPAnswer) -> RequestFailed:
        """Return the failure that an unsuccessful answer means."""
        endpoint = self.endpoint
        if location := 300 <= answer.status < 400 and answer.headers.get("location", ""):
            # A redirect could send the prompt to any server, and a loop of redirects would waste time.
            target = urlsplit(urljoin(f"{endpoint.url}/", location))
            address = endpoint.hide(f"{target.scheme}://{target.netloc.rpartition('@')[2]}")
            reason = f"{endpoint.server} answered HTTP {answer.status} and redirects to {address}; this is not followed"
            reason += "; give the final address"
            return RequestFailed(reason, again=False, kind="bad_request", for_all=True)
        body = await answer.read(_ERROR_BYTES)
        return self._refusal(endpoint, answer.status, answer.headers, body.decode(errors="replace"))

    def _connect(self) -> httpx2.AsyncClient:
        import httpx2

        # No proxy is used for this machine, whatever the environment says.
        use_proxies = not self.endpoint.is_local
        try:
            connection = httpx2.AsyncClient(
                headers=self._headers,
                timeout=httpx2.Timeout(self._idle, connect=min(20.0, self._idle), pool=None),
                verify=_certificates(use_proxies),
                trust_env=use_proxies,
                follow_redirects=False,
            )
        except (ImportError, ValueError, httpx2.InvalidURL) as error:
            reason = f"{type(error).__name__}; check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY (SOCKS is not supported)"
            raise UserError(f"{self.endpoint.provider}: a proxy in the environment cannot be used ({reason})") from None
        self._connections.append(connection)
        return connection


class HTTPAnswer:
    """The answer to one request. Its size is checked while it is read."""

    def __init__(self, response: httpx2.Response, endpoint: Endpoint, max_bytes: int) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.endpoint = endpoint
        self._response = response
        self._max_bytes = max_bytes
        self._chunks = self._counted()

    @property
    def is_json(self) -> bool:
        """Return True if the answer declares itself as one JSON text."""
        return "json" in self.headers.get("content-type", "")

    async def read(self, size: int | None = None) -> bytes:
        """Return the whole body, or its first `size` bytes."""
        chunks: list[bytes] = []
        async for chunk in self._chunks:
            chunks.append(chunk)
            if size is not None and sum(map(len, chunks)) >= size:
                break
        return b"".join(chunks)[:size]

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the data of each server-sent event. Comments, which keep a connection alive, are left out.

        Only line feeds end a line, because JSON may contain U+2028 unescaped.
        """
        data: list[bytes] = []
        async for line in self._lines():
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and data:
                yield b"\n".join(data)
                data = []
        if data:
            yield b"\n".join(data)

    async def _lines(self) -> AsyncIterator[bytes]:
        rest = b""
        async for chunk in self._chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r")
        yield rest.rstrip(b"\r")

    async def drain(self, seconds: float) -> None:
        """Read the rest for at most `seconds`. A connection is reused only if its last answer was read to the end."""
        import httpx2

        with contextlib.suppress(TimeoutError, RequestFailed, httpx2.HTTPError):
            async with asyncio.timeout(seconds):
                async for _ in self._chunks:
                    pass

    async def _counted(self) -> AsyncIterator[bytes]:
        packing = self.headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("identity", *_PACKED):
            reason = f"{self.endpoint.server} used a compression that was not requested"
            raise RequestFailed(f"{reason} ({self.endpoint.hide(packing)})", again=False, kind="invalid")
        size = 0
        async for chunk in self._response.aiter_bytes() if packing in _PACKED else self._response.aiter_raw():
            size += len(chunk)
            if size > self._max_bytes:
                most = f"{self._max_bytes / (1 << 20):.3g} MB"
                reason = f"the answer of {self.endpoint.server} is larger than {most}; the rest was not read"
                raise RequestFailed(reason, again=False, kind="invalid")
            yield chunk


@cache
def _certificates(from_environment: bool) -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context(trust_env=from_environment)  # takes longer than a request on loopback


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop in its own thread and return its result. Ctrl-C stops it at once.

    A thread is always used, because a running loop, as in a notebook, cannot be entered again.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    async def end() -> None:
        await asyncio.wait([task])
        await loop.shutdown_asyncgens()

    thread = threading.Thread(target=loop.run_until_complete, args=(end(),), name="r2med-net", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)  # an endless wait cannot be interrupted on Windows
    except BaseException:
        with contextlib.suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(task.cancel)
        until = time.monotonic() + 5  # without a join: after Ctrl-C in one, Python says that the thread has ended
        while loop.is_running() and time.monotonic() < until:
            time.sleep(0.01)
        raise
    finally:
        if not loop.is_running():
            loop.close()  # unlike asyncio.run, this does not wait for a thread that is looking up a host
    return task.result()
