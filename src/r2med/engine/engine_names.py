"""Find engines by the names that users type."""

from __future__ import annotations

from r2med.core.errors import unknown
from r2med.engine.work import THREADS, Engine


def open_engine(name: str, local_only: bool = False) -> Engine:
    """Return the engine of a name: threads, ray or ray://HOST:PORT. It does not connect yet.

    With `local_only` a cluster with a node on another machine is refused before anything is sent to it.
    """
    if name == "threads":
        return THREADS
    if name != "ray" and not name.startswith("ray://"):
        raise unknown("engine", name, ["threads", "ray"], "threads, ray (here, or at RAY_ADDRESS) or ray://HOST:PORT")
    from r2med.engine.ray_engine import RayEngine

    return RayEngine(name, local_only)
