"""A small dataset and an LLM whose answers depend on the seed, for repeats."""

from support.repeated_runs import data, runtime, served

__all__ = ["data", "runtime", "served"]
