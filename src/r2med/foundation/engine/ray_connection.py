"""Connect to a Ray cluster, or start one on this machine. Every failure is reported in one line."""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.threads import cores

ANSWER_SECONDS = 5.0
"""Seconds within which the port of a cluster must answer. Ray itself would try for minutes."""


def connect(engine: str) -> bool:
    """Connect to the cluster of `ray` or `ray://HOST:PORT`. Return False if this process is connected already.

    `ray` is the cluster at RAY_ADDRESS, or the one that `ray start` started on this machine, or a new one that listens
    on the loopback interface only and ends with this process. Raises UserError if the cluster does not exist, or if its
    version of Ray or Python differs.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise Ray sends usage reports
    address = os.environ.get("RAY_ADDRESS", "") if engine == "ray" else engine
    if address in ("", "auto"):
        address = _started_here()
    elif address != "local":
        _check_port(address)
    if address in ("", "local"):
        # Read when Ray is imported. Without it, Ray listens on all interfaces even on a single machine.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    else:
        os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", "3")  # seconds for which a wrong token is retried
    import ray

    if ray.is_initialized():
        return False
    stopped_by = signal.getsignal(signal.SIGTERM)
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address in ("", "local"):
            ray.init("local", include_dashboard=False, num_cpus=cores(), **quiet)
        else:
            ray.init(address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, ImportError, ray.exceptions.RayError) as error:
        reason = str(error)
        if "Traceback" in reason:  # of another process
            reason = reason.strip().splitlines()[-1]
        where = f"the Ray cluster at {address}" if address else "Ray on this machine"
        raise UserError(f"{where} cannot be used: {reason}") from None
    finally:
        # Ray has put its own handler in place, which writes a stack.
        if threading.current_thread() is threading.main_thread() and stopped_by is not None:
            signal.signal(signal.SIGTERM, stopped_by)
    return True


def check_local(addresses: Iterable[str]) -> None:
    """Raise UserError if a node of the cluster is on another machine, because offline no text may be sent to it."""
    for address in addresses:
        if not _is_here(address):
            raise UserError(
                f"offline: a node of the Ray cluster, {address}, is not this machine, so nothing was sent to it "
                "(remove offline (--offline) to allow this, or use engine (--engine threads))",
            )


def _is_here(address: str) -> bool:
    """Return True if an address belongs to this machine. Only then a socket can be bound to it."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as own:
            own.bind((address, 0))
    except OSError:
        return False
    return True


def _started_here() -> str:
    """Return the address that `ray start` left on this machine; empty if there is none or it does not answer."""
    base = os.environ.get("RAY_TMPDIR") or ("/tmp" if os.name == "posix" else tempfile.gettempdir())
    file = Path(base) / "ray" / "ray_current_cluster"
    address = file.read_text().strip() if file.is_file() else ""
    return address if address and _answers(address) is None else ""


def _check_port(address: str) -> None:
    if (error := _answers(address)) is not None:
        reason = os.strerror(error.errno) if isinstance(error.errno, int) and error.errno > 0 else str(error)
        raise UserError(
            f"no Ray cluster answers at {address} ({reason}); start one with `ray start --head`, "
            "or unset RAY_ADDRESS to use this machine alone"
        )


def _answers(address: str) -> OSError | None:
    """Return None if an address answers, otherwise the error."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise UserError(f"{address!r} is not an address of a Ray cluster; use HOST:PORT or ray://HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except OSError as error:
        return error
    return None
