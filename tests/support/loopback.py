"""What the servers on loopback have in common: how a request is remembered, and a free port to listen on or not."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def tokens(text: str) -> int:
    """Return how many tokens the servers bill a text as."""
    return max(1, len(text.split()))


@dataclass(frozen=True)
class Request:
    """One request as it came."""

    at: float
    path: str
    key: str
    body: dict[str, Any]


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve in threads on a free port; gives the address."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    http.block_on_close = False
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


@contextmanager
def nobody_listening() -> Iterator[str]:
    """Give an address that refuses connections: its port is taken, so that nobody else comes to listen there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"
