"""Engines that run work on the cores of this machine or on a cluster."""

from r2med.foundation.engine.threads import cores, map_threads, one_blas_thread, share

__all__ = ["cores", "map_threads", "one_blas_thread", "share"]
