"""Run the server: bind a socket, serve, and stop cleanly at a signal."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shlex import quote
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from r2med.foundation.core.errors import UserError
from r2med.server import limits
from r2med.server.answer_pool import AnswerPool
from r2med.server.http_app import is_loopback
from r2med.server.search_queue import SearchQueue

TOKEN = "R2MED_SERVE_TOKEN"  # the name of the variable, not its value


@dataclass(frozen=True)
class Listener:
    """A socket that is bound but does not listen yet, and its URL for clients."""

    socket: socket.socket
    url: str

    def listen(self) -> None:
        """Accept connections from now on. Raises UserError if another server listens on the port."""
        try:
            self.socket.listen()
        except OSError as error:  # two servers may bind one port until one listens
            host, port = self.socket.getsockname()[:2]
            raise _bind_error(host, port, error) from None


def bind(host: str, port: int, token: str | None) -> Listener:
    """Bind a socket before the corpus is indexed. Raises UserError if this fails, or if a public host has no token."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UserError(f"no address {host!r} here: host (--host) takes a name or address of this machine") from None
    # If a name has addresses of both kinds, clients must reach the server at 127.0.0.1.
    family, kind, protocol, _, address = min(addresses, key=lambda entry: entry[0] != socket.AF_INET)
    if not is_loopback(str(address[0])) and not token:
        raise UserError(
            f"host (--host {quote(host)}) can be reached by others: set {TOKEN} to a secret that clients have to send"
        )
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # on Windows it would let two servers share one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _bind_error(host, port, error) from None
    shown = f"[{address[0]}]" if family == socket.AF_INET6 else str(address[0])
    return Listener(listener, f"http://{shown}:{listener.getsockname()[1]}")


def _bind_error(host: str, port: int, error: OSError) -> UserError:
    if error.errno == errno.EADDRINUSE:
        return UserError(
            f"port {port} of {host} is in use: choose another with port (--port), or 0 for any that is free",
        )
    if error.errno == errno.EACCES:
        return UserError(f"no permission for port {port}: choose one above 1023 with port (--port)")
    if error.errno == errno.EADDRNOTAVAIL:
        return UserError(f"{host} is no address of this machine: choose another with host (--host)")
    return UserError(f"cannot listen on {host}:{port}: {error.strerror or error}")


def serve_app(
    app: FastAPI,
    listener: Listener,
    ready: Callable[[], None],
    *,
    access_log: bool = False,
    leave: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGINT or SIGTERM. Then running searches finish, and waiting requests get 503.

    `leave` is called if a search does not end in time and the process exits at once.
    """
    queue: SearchQueue = app.state.queue
    answers: AnswerPool = app.state.answers
    AppServer(app, ready, (queue, answers), access_log=access_log).serve_at(listener)
    if queue.is_searching or answers.is_busy or app.state.data.is_opening:
        end_now(leave)


def end_now(leave: Callable[[], None]) -> NoReturn:
    """End the process without waiting for its threads, after a call of `leave`.

    A search that does not end must not keep the process alive. A normal exit could crash, because threads of
    libraries still use objects that Python would destroy.
    """
    leave()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _print_to_stderr(logger: logging.Logger) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    handler.addFilter(_without_query)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _without_query(record: logging.LogRecord) -> bool:
    """Remove the text after a question mark from a log line. It may contain a token that was sent by mistake."""
    if isinstance(record.args, tuple):
        record.args = tuple(arg.partition("?")[0] if isinstance(arg, str) else arg for arg in record.args)
    return True


class AppServer(uvicorn.Server):
    """The server of `serve` and `review`. The `Guard` of the application checks who may send requests."""

    def __init__(
        self,
        app: FastAPI,
        ready: Callable[[], None],
        queues: Sequence[SearchQueue | AnswerPool] = (),
        *,
        access_log: bool = False,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http="h11",
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                log_level="error",
                access_log=access_log,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=limits.GRACE_SECONDS + 2,
            )
        )
        self._queues = queues
        self._ready = ready
        self._loop: asyncio.AbstractEventLoop | None = None

    def serve_at(self, listener: Listener) -> None:
        """Serve until SIGINT or SIGTERM, or until `should_exit` is set."""
        if self.config.access_log:
            _print_to_stderr(logging.getLogger("uvicorn.access"))
        listener.listen()
        self.run(sockets=[listener.socket])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server and call `ready`."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop the server. Unlike in uvicorn, the signal is not raised again, because a stop is not a failure."""
        if self.should_exit and sig == signal.SIGINT:  # Ctrl-C was pressed twice
            self.force_exit = True
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        for queue in self._queues:
            queue.close()
            asyncio.get_running_loop().call_later(0 if self.force_exit else limits.GRACE_SECONDS, queue.abandon)
