"""Where the server listens: this machine alone, unless there is a token to tell others apart by."""

from __future__ import annotations

import errno
import os
import socket
from dataclasses import dataclass

from r2med.errors import UserError
from r2med.serve.guard import is_loopback

TOKEN = "R2MED_SERVE_TOKEN"  # the name of the variable, not its value
BACKLOG = 2048


@dataclass(frozen=True)
class Place:
    """A socket that has its address but does not listen yet, and how a client writes that address."""

    socket: socket.socket
    url: str

    def listen(self) -> None:
        """Take connections from now on."""
        try:
            self.socket.listen(BACKLOG)
        except OSError as error:  # two may bind one port, as long as neither listens
            host, port = self.socket.getsockname()[:2]
            raise _fault(host, port, error) from None


def take(host: str, port: int, token: str | None) -> Place:
    """Return the place to listen at, taken now, so that a port in use is told before the corpus is indexed."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UserError(f"no address {host!r} here: --host takes a name or address of this machine") from None
    # Where a name has both kinds, clients that say 127.0.0.1 are to find it.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    if not is_loopback(str(address[0])) and not token:
        raise UserError(f"--host {host} can be reached by others: set {TOKEN} to a secret that clients have to send")
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _fault(host, port, error) from None
    shown = f"[{address[0]}]" if family == socket.AF_INET6 else str(address[0])
    return Place(listener, f"http://{shown}:{listener.getsockname()[1]}")


def _fault(host: str, port: int, error: OSError) -> UserError:
    if error.errno == errno.EADDRINUSE:
        return UserError(f"port {port} of {host} is in use: choose another with --port, or 0 for any that is free")
    if error.errno == errno.EACCES:
        return UserError(f"no permission for port {port}: choose one above 1023 with --port")
    if error.errno == errno.EADDRNOTAVAIL:
        return UserError(f"{host} is no address of this machine: choose another with --host")
    return UserError(f"cannot listen on {host}:{port}: {error.strerror or error}")
