"""Connecting to a Ray cluster, or starting one on this machine alone; whatever is in the way is told in one line."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
from pathlib import Path

from r2med.engine.threads import cores
from r2med.errors import MissingExtraError, UserError

PATIENCE = 5.0
"""Seconds within which a cluster's port must answer; Ray itself would try for minutes."""


def connect(engine: str) -> bool:
    """Connect to the cluster of `ray` or `ray://HOST:PORT`; return False if this process is connected already.

    `ray` is the cluster at RAY_ADDRESS, else the one that `ray start` started on this machine, else a new one that
    listens on the loopback interface only and ends with this process. Raises UserError if there is no such cluster,
    or if its Ray or Python is another.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to Ray's makers
    address = os.environ.get("RAY_ADDRESS", "") if engine == "ray" else engine
    is_started = _pointer().is_file()
    if not address and not is_started:
        # Read when Ray is imported: without it, Ray listens on all interfaces of a machine that is no cluster.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingExtraError("--engine ray", "cluster") from None
    if ray.is_initialized():
        return False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address not in ("", "auto", "local"):
        _check_port(address)
    try:
        if address or is_started:
            ray.init(address or "auto", **quiet)
        else:
            ray.init("local", include_dashboard=False, num_cpus=cores(), **quiet)
    except (ConnectionError, RuntimeError, ValueError, ImportError, ray.exceptions.RayError) as error:
        where = f"the Ray cluster at {address}" if address else "Ray on this machine"
        raise UserError(f"{where} cannot be used: {error}") from None
    return True


def _pointer() -> Path:
    """Return the file in which `ray start` leaves the address of a cluster, and which `ray stop` removes."""
    base = os.environ.get("RAY_TMPDIR") or ("/tmp" if os.name == "posix" else tempfile.gettempdir())
    return Path(base) / "ray" / "ray_current_cluster"


def _check_port(address: str) -> None:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except ValueError:
        raise UserError(f"{address!r} is no address of a Ray cluster: HOST:PORT or ray://HOST:PORT") from None
    except OSError as error:
        reason = os.strerror(error.errno) if isinstance(error.errno, int) and error.errno > 0 else str(error)
        raise UserError(
            f"no Ray cluster answers at {address} ({reason}): start one with `ray start --head`, "
            "or unset RAY_ADDRESS to use this machine alone"
        ) from None
