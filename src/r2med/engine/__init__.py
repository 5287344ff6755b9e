"""Where work runs: here, on all cores."""

from r2med.engine.threads import cores, map_threads

__all__ = ["cores", "map_threads"]
