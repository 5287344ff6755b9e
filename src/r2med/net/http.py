"""Asking one endpoint over HTTP, within limits: what it sends is never trusted to end, to be small or to be kind.

httpx is used directly. A provider's SDK would bring its own retries, which know no deadline, no shrinking limit and no
Ctrl-C, its own classes of errors, and more work for each answer than all else here together.
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

from r2med.core.errors import MissingExtraError, UserError
from r2med.net.endpoint import Endpoint
from r2med.net.retry import RequestFailed, status_failure

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

Refusal = Callable[[Endpoint, int, Mapping[str, str], str], RequestFailed]
"""(endpoint, status, headers, body) -> what an error means."""

MAX_BYTES = 64 << 20
"""Bytes of an answer at most, unpacked: several times the longest that a model writes."""
_ERROR_BYTES = 64 << 10
"""Bytes of an error's body that are read; one line of it is shown."""
_PACKED = ("gzip", "deflate")
"""Packings that are unpacked though they are not asked for. Of these, one piece from the network becomes 64 MB at most;
of others, or of one inside the other, it may become gigabytes."""


class Client:
    """Sends requests to one endpoint; use it in `async with`, inside one event loop."""

    def __init__(
        self, endpoint: Endpoint, idle: float, *, key: str = "", refusal: Refusal = status_failure, extra: str = "llm"
    ) -> None:
        """Prepare to send: no byte for `idle` seconds is a failure.

        `refusal` says what an error's status, headers and body mean; `extra` is what installs httpx.
        """
        self.endpoint = endpoint
        self._idle = idle
        self._headers = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "r2med"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._refusal = refusal
        self._extra = extra
        self._connections: list[httpx.AsyncClient] = []
        self._free: list[httpx.AsyncClient] = []

    async def __aenter__(self) -> Client:
        self._free.append(self._connect())  # so that what is not installed is said before anything is sent
        return self

    async def __aexit__(self, *error: object) -> None:
        for connection in self._connections:
            await connection.aclose()

    async def post(self, path: str, body: Mapping[str, Any], max_bytes: int = MAX_BYTES) -> bytes:
        """Return the body of the answer. Raises RequestFailed."""
        return await self.send(path, body, Answer.read, max_bytes)

    async def send(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[Answer], Awaitable[T]],
        max_bytes: int = MAX_BYTES,
    ) -> T:
        """Send JSON to the endpoint's URL + path and return what `read(answer)` returns. Raises RequestFailed.

        `read` is called for statuses of success only, and may raise RequestFailed itself.
        """
        import httpx

        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        # One client a connection: httpx's pool looks at all its connections for each request of each, which at 64 at
        # once takes twice as long as everything else. The last one used is the warmest.
        connection = self._free.pop() if self._free else self._connect()
        try:
            async with connection.stream("POST", f"{self.endpoint.url}{path}", content=content) as response:
                answer = Answer(response, self.endpoint, max_bytes)
                if not response.is_success:
                    raise await self._refused(answer)
                return await read(answer)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            failure = self._broken(error, unreachable=True)
        except httpx.TimeoutException:
            failure = RequestFailed(
                f"{self.endpoint.server} was silent for {self._idle:g} s", again=True, kind="timeout"
            )
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError) as error:
            failure = self._broken(error)
        finally:
            self._free.append(connection)
        raise failure  # outside of `except`, whose exception would carry the request along, and it the key

    async def _refused(self, answer: Answer) -> RequestFailed:
        """Return what an answer without success means."""
        endpoint = self.endpoint
        if location := 300 <= answer.status < 400 and answer.headers.get("location", ""):
            # Followed, it would take the prompt, and in a loop the time, wherever the server likes.
            target = urlsplit(urljoin(f"{endpoint.url}/", location))
            address = endpoint.hide(f"{target.scheme}://{target.netloc.rpartition('@')[2]}")
            reason = f"{endpoint.server} answered HTTP {answer.status} and sends us to {address}, which is not followed"
            reason += ": give the address that answers itself"
            return RequestFailed(reason, again=False, kind="bad_request", for_all=True)
        body = await answer.read_start(_ERROR_BYTES)
        return self._refusal(endpoint, answer.status, answer.headers, body.decode(errors="replace"))

    def _broken(self, error: Exception, unreachable: bool = False) -> RequestFailed:
        reason = f"the connection to {self.endpoint.server} failed ({type(error).__name__})"
        return RequestFailed(reason, again=True, unreachable=unreachable)

    def _connect(self) -> httpx.AsyncClient:
        try:
            import httpx
        except ImportError:
            raise MissingExtraError(self.endpoint.provider, self._extra) from None
        # No proxy leads to this machine, whatever the environment says.
        use_proxies = not self.endpoint.is_local
        try:
            connection = httpx.AsyncClient(
                headers=self._headers,
                timeout=httpx.Timeout(self._idle, connect=min(20.0, self._idle), pool=None),
                verify=_certificates(use_proxies),
                trust_env=use_proxies,
                follow_redirects=False,
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            reason = f"{type(error).__name__}: is one of HTTP_PROXY, HTTPS_PROXY and ALL_PROXY wrong, or a SOCKS proxy?"
            raise UserError(f"{self.endpoint.provider}: a proxy in the environment cannot be used ({reason})") from None
        self._connections.append(connection)
        return connection


class Answer:
    """The answer to one request, counted while it is read."""

    def __init__(self, response: httpx.Response, endpoint: Endpoint, max_bytes: int) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.endpoint = endpoint
        self._response = response
        self._max_bytes = max_bytes
        self._chunks = self._counted()

    @property
    def is_json(self) -> bool:
        """Return whether the answer says that it is one JSON text."""
        return "json" in self.headers.get("content-type", "")

    async def read(self) -> bytes:
        """Return the whole body."""
        return b"".join([chunk async for chunk in self._chunks])

    async def read_start(self, size: int) -> bytes:
        """Return so many bytes of the body at most."""
        start = b""
        async for chunk in self._chunks:
            start += chunk
            if len(start) >= size:
                break
        return start[:size]

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the data of each server-sent event; comments, which keep a connection alive, are left out.

        Lines end at line feeds only: U+2028 may stand unescaped inside JSON.
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
        """Read what is left for so long: a connection is used again only when its last answer was read to its end."""
        import httpx

        with contextlib.suppress(TimeoutError, RequestFailed, httpx.HTTPError):
            async with asyncio.timeout(seconds):
                async for _ in self._chunks:
                    pass

    async def _counted(self) -> AsyncIterator[bytes]:
        packing = self.headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("identity", *_PACKED):
            reason = f"{self.endpoint.server} packed its answer in a way that was not asked for"
            raise RequestFailed(f"{reason} ({self.endpoint.hide(packing)})", again=False, kind="invalid")
        size = 0
        async for chunk in self._response.aiter_bytes() if packing in _PACKED else self._response.aiter_raw():
            size += len(chunk)
            if size > self._max_bytes:
                most = f"{self._max_bytes / (1 << 20):.3g} MB"
                reason = f"the answer of {self.endpoint.server} is larger than {most}: the rest was not read"
                raise RequestFailed(reason, again=False, kind="invalid")
            yield chunk


@cache
def _certificates(from_environment: bool) -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context(trust_env=from_environment)  # takes longer than a request on loopback


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns, run on a loop in a thread of its own and stopped by Ctrl-C at once.

    Always a thread: a running loop, as in a notebook, cannot be entered again, and one way is easier than two.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def body() -> None:
        try:
            loop.run_until_complete(asyncio.wait([task]))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()  # unlike asyncio.run, without waiting for a thread that is looking up a host

    thread = threading.Thread(target=body, name="r2med-net", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)  # a wait without end cannot be interrupted on Windows
    except BaseException:
        with contextlib.suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join(5)
        raise
    return task.result()
