"""Offline mode: every address of another machine is refused before a byte is sent.

The switch is the environment variable R2MED_OFFLINE, which `--offline` sets, so that child processes inherit it. It is
checked in two places that every client uses. `Endpoint` refuses addresses by name, even if a proxy on this machine
would forward the request. An audit hook checks Python's sockets. The hub's downloader, which may use other sockets,
has its own variables.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from r2med.foundation.core.errors import UserError

OFFLINE_VARIABLE = "R2MED_OFFLINE"
_OFF = ("", "0", "no", "false", "off")
_HUB_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_TELEMETRY")

_HOST_FIRST = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
_ADDRESS_SECOND = ("socket.connect", "socket.sendto", "socket.sendmsg")


def is_offline() -> bool:
    """Return True if this process must not send anything to other machines."""
    return os.environ.get(OFFLINE_VARIABLE, "").strip().lower() not in _OFF


def go_offline() -> None:
    """Refuse all addresses of other machines, in this process and in its child processes."""
    os.environ[OFFLINE_VARIABLE] = "1"
    guard()


@contextmanager
def offline() -> Iterator[None]:
    """Make all threads offline inside a `with` block. The last block that ends restores the previous state."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = {name: os.environ.get(name) for name in (OFFLINE_VARIABLE, *_HUB_VARIABLES)}
        _inside += 1
        go_offline()
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _restore(_before)


def _restore(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    constants = sys.modules.get("huggingface_hub.constants")
    if constants is not None:
        was_on = (variables["HF_HUB_OFFLINE"] or "").upper() in ("1", "ON", "YES", "TRUE")
        constants.HF_HUB_OFFLINE = was_on  # type: ignore[attr-defined]


_lock = threading.Lock()
_inside = 0
"""The number of open `offline()` blocks in all threads."""
_before: dict[str, str | None] = {}


def guard() -> None:
    """Check every connection of this process from now on with `is_offline()`."""
    for variable in _HUB_VARIABLES:
        os.environ[variable] = "1"
    constants = sys.modules.get("huggingface_hub.constants")
    if constants is not None:  # it read its variable when it was imported
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
    _watch_sockets()


def is_loopback(host: str | bytes | None) -> bool:
    """Return True if a host is this machine: a loopback name or address, or no host, as servers bind to."""
    name = (host.decode(errors="replace") if isinstance(host, bytes) else host or "").strip("[]").partition("%")[0]
    if not name or name.lower() == "localhost" or name.lower().endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


_plans = 0
"""Number of open blocks of `planning`. It counts for the whole process, as offline mode does."""


@contextmanager
def planning() -> Iterator[None]:
    """Allow addresses of other machines to be named inside a `with` block, as `--plan` does. Nothing can be sent."""
    global _plans
    _plans += 1
    try:
        yield
    finally:
        _plans -= 1


def is_planning() -> bool:
    """Return True inside the block of `planning`."""
    return _plans > 0


def refuse(host: str) -> UserError:
    """Return the error for a host that is not this machine."""
    return UserError(
        f"offline: {host} is not this machine, so nothing was sent to it (offline (--offline) or "
        f"{OFFLINE_VARIABLE} is set; remove it to allow this)",
    )


@cache
def _watch_sockets() -> None:
    # An audit hook stays until the process ends. It reads the variable each time.
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith("socket.") or not is_offline():
        return
    if event in _HOST_FIRST:
        host = arguments[0]
    elif event in _ADDRESS_SECOND and arguments[0].family in (socket.AF_INET, socket.AF_INET6) and arguments[1]:
        host = arguments[1][0]
    else:
        return
    if not is_loopback(host):
        raise refuse(str(host))
