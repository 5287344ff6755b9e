"""Send HTTP requests to one endpoint. Its answers are not trusted: time and size are limited.

httpx2 is used directly. The SDK of a provider has its own retries, without a deadline, an adaptive limit and Ctrl-C. It
also has its own error classes, and takes more time per answer than all the code here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from r2med.foundation.core.errors import UserError
from r2med.foundation.net.endpoint import Endpoint
from r2med.foundation.net.retry import RequestFailed, status_failure

if TYPE_CHECKING:
    import ssl

    import httpx2

T = TypeVar("T")

Refusal = Callable[[Endpoint, int, Mapping[str, str], str], RequestFailed]
"""Turns (endpoint, status, headers, body) of an error into the failure that it means."""

MAX_BYTES = 64 << 20
"""Maximum size of an unpacked answer in bytes, several times the longest answer of a model."""
_ERROR_BYTES = 64 << 10
"""Number of bytes that are read of the body of an error. One line of it is shown."""
_PACKED = ("gzip", "deflate")
"""Encodings that are unpacked although they were not requested. httpx2 unpacks them in bounded pieces. With other
or nested encodings a piece may unpack to gigabytes."""


class Client:
    """A client of one endpoint. Use it in `async with`, inside one event loop."""

    def __init__(self, endpoint: Endpoint, idle: float, *, key: str = "", refusal: Refusal = status_failure) -> None:
        """Prepare the client. If no byte arrives for `idle` seconds, the request fails.

        `refusal` turns status, headers and body of an error into a failure.
        """
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
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failure = self._broken(error, unreachable=True)
        except httpx2.TimeoutException:
            failure = RequestFailed(
                f"{self.endpoint.server} was silent for {self._idle:g} s", again=True, kind="timeout"
            )
        except (httpx2.TransportError, httpx2.StreamError, httpx2.DecodingError) as error:
            failure = self._broken(error)
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
        body = await answer.read_start(_ERROR_BYTES)
        return self._refusal(endpoint, answer.status, answer.headers, body.decode(errors="replace"))

    def _broken(self, error: Exception, unreachable: bool = False) -> RequestFailed:
        reason = f"the connection to {self.endpoint.server} failed ({type(error).__name__})"
        return RequestFailed(reason, again=True, unreachable=unreachable)

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

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([chunk async for chunk in self._chunks])

    async def read_start(self, size: int) -> bytes:
        """Return at most `size` bytes of the body."""
        start = b""
        async for chunk in self._chunks:
            start += chunk
            if len(start) >= size:
                break
        return start[:size]

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the data of each server-sent event. Comments, which keep a connection alive, are left out.

        Only line feeds end a line, because JSON may contain U+2028 unescaped.
        """
        unfinished: list[bytes] = []
        data: list[bytes] = []
        async for chunk in self._chunks:
            *lines, rest = chunk.split(b"\n")
            for line in lines:
                if unfinished:
                    line = b"".join((*unfinished, line))
                    unfinished = []
                line = line.rstrip(b"\r")
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    yield b"\n".join(data)
                    data = []
            if rest:
                unfinished.append(rest)
        last = b"".join(unfinished).rstrip(b"\r")
        if last.startswith(b"data:"):
            data.append(last[5:].removeprefix(b" "))
        if data:
            yield b"\n".join(data)

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

    def body() -> None:
        try:
            loop.run_until_complete(asyncio.wait([task]))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()  # unlike asyncio.run, this does not wait for a thread that is looking up a host

    thread = threading.Thread(target=body, name="r2med-net", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)  # an endless wait cannot be interrupted on Windows
    except BaseException:
        with contextlib.suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join(5)
        raise
    return task.result()
