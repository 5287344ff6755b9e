"""Where work runs: here, on all cores, or on a cluster."""

from r2med.engine.threads import cores, map_threads

__all__ = ["cores", "map_threads"]
