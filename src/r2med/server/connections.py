"""Limit the connections of a server, so that idle or slow clients cannot exhaust it.

With uvicorn alone, a client may take forever to send the head of a request or to read the answer. `WatchedConnection`
passes bytes between a socket and uvicorn's protocol and notes when they move. `Connections` is an ASGI middleware that
knows the state of each connection. The application limits the time for the body of a request.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from r2med.server.http_app import refusal
from r2med.server.limits import Limits
from r2med.server.refusals import unavailable

_CHECK_SECONDS = 1

Address = tuple[str, int]


class Connections:
    """ASGI middleware that knows the state of each connection, and closes idle ones if there are too many."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.limits = limits
        self._app = app
        self._open: dict[Address, WatchedConnection] = {}

    def protocol(self, **settings: Any) -> WatchedConnection:
        """Return the protocol of a new connection, as uvicorn's setting `http` asks for it."""
        return WatchedConnection(self, H11Protocol(**settings))

    def add(self, connection: WatchedConnection) -> None:
        """Add a new connection. If there are too many, close the connection that has been idle longest.

        If all are busy, the new one is refused when it sends a request, because an earlier answer may get lost.
        """
        self._open[connection.address] = connection
        holding = [each for each in self._open.values() if each.holds_file]
        if len(holding) <= self.limits.connections:
            return
        waiting = [each for each in holding if each is not connection and each.is_waiting]
        if waiting:
            min(waiting, key=lambda each: each.waiting_since).transport.abort()
        else:
            connection.is_refused = True

    def remove(self, connection: WatchedConnection) -> None:
        """Remove a closed connection."""
        self._open.pop(connection.address, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, and note when it has arrived completely and when it is answered."""
        connection = self._open.get(tuple(scope["client"])) if scope.get("client") else None
        if connection is None:  # it was just closed
            await self._app(scope, receive, send)
            return
        connection.doing = "receiving" if scope["method"] == "POST" else "working"

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                connection.doing = "working"
            return message

        async def sent(message: Message) -> None:
            await send(message)
            connection.waiting_since = connection.loop.time()
            if message["type"] == "http.response.body" and not message.get("more_body"):
                connection.doing = "nothing"

        await (_refuse if connection.is_refused else self._app)(scope, received, sent)


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    response = refusal(unavailable("too many connections: try again in a moment"))
    response.headers["Connection"] = "close"
    await response(scope, receive, send)


class WatchedConnection(asyncio.Protocol):
    """A connection that is closed if its client keeps the server waiting too long."""

    def __init__(self, connections: Connections, http: asyncio.Protocol) -> None:
        self.doing: Literal["nothing", "receiving", "working"] = "nothing"
        """The state of the server for this client. It is "nothing" until the head of a request has arrived."""
        self.is_refused = False
        self.address: Address = ("", 0)
        self.transport: asyncio.Transport
        self.loop = asyncio.get_running_loop()
        self.waiting_since = self.loop.time()
        self._connections = connections
        self._http = http
        self._unsent = 0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def holds_file(self) -> bool:
        """Return True if the connection is open, or is closing and still has something to send."""
        return not self.transport.is_closing() or self.transport.get_write_buffer_size() > 0

    @property
    def is_waiting(self) -> bool:
        """Return True if the server waits for a request, or for the rest of one, or for its answer to be read."""
        return self.doing != "working" or self.transport.get_write_buffer_size() > 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to watch the connection."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.address = tuple(transport.get_extra_info("peername")[:2])  # as uvicorn names the client of a request
        self._http.connection_made(transport)
        self._watch()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection."""
        if self._timer is not None:
            self._timer.cancel()
        self._connections.remove(self)
        self._http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on received bytes. A client that breaks the protocol after it was answered is disconnected."""
        try:
            self._http.data_received(data)
        except h11.LocalProtocolError:  # uvicorn would answer a second time
            self.transport.abort()

    def eof_received(self) -> bool | None:
        """Pass on the end of the input."""
        return self._http.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the client reads too slowly."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the client continues to read."""
        self._http.resume_writing()

    def _watch(self) -> None:
        """Check the connection every second, and close it when the client exceeds its time limit."""
        now = self.loop.time()
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent:  # the answer is being read, however slowly
            self.waiting_since = now
        self._unsent = unsent
        has_waited = now - self.waiting_since >= self._connections.limits.seconds
        if has_waited and (self.doing == "nothing" or unsent):
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(_CHECK_SECONDS, self._watch)
