"""The process that serves: uvicorn on a socket of ours, stopped cleanly by a signal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from r2med.serve.address import BACKLOG, Place
from r2med.serve.limits import GRACE
from r2med.serve.line import Line


def serve(
    app: FastAPI, place: Place, ready: Callable[[], None], *, grace: int = GRACE, access_log: bool = False
) -> None:
    """Serve until SIGINT or SIGTERM, then return: what runs is finished, what waits is sent away with 503."""
    config = uvicorn.Config(
        app,
        http="h11",  # one implementation, the tested one, whatever else is installed
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="error",
        access_log=access_log,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=grace + 2,
    )
    if access_log:
        _show(logging.getLogger("uvicorn.access"))
    line: Line = app.state.line
    place.listen()
    _Server(config, line, ready, grace).run(sockets=[place.socket])
    if line.is_searching:
        # Python must not tear down what a library's threads are using: that ends in a crash now and then.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, line: Line, ready: Callable[[], None], grace: int) -> None:
        super().__init__(config)
        self._line, self._ready, self._grace = line, ready, grace
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop. Unlike uvicorn's own, it does not raise the signal again at the end: to be stopped is no failure."""
        if self.should_exit and sig == signal.SIGINT:  # pressed twice: at once
            self.force_exit = True
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._line.close()
        asyncio.get_running_loop().call_later(0 if self.force_exit else self._grace, self._line.abandon)


def _show(logger: logging.Logger) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
