"""The engines by their names, as one types them."""

from __future__ import annotations

from r2med.core.errors import unknown
from r2med.engine.work import THREADS, Engine


def open_engine(name: str, local_only: bool = False) -> Engine:
    """Return the engine of a name: threads, ray or ray://HOST:PORT; nothing is connected to yet.

    With `local_only` a cluster that has a node on another machine is refused before it is sent anything.
    """
    if name == "threads":
        return THREADS
    if name != "ray" and not name.startswith("ray://"):
        raise unknown("engine", name, ["threads", "ray"], "threads, ray (here, or at RAY_ADDRESS) or ray://HOST:PORT")
    from r2med.engine.ray_engine import RayEngine

    return RayEngine(name, local_only)
