"""A small dataset, what an undisturbed evaluation of it gives, and a small disk, for commands that are disturbed.

Also a small dataset and an LLM whose answers depend on the seed, for repeats.
"""

from support.disturbed_runs import finished, mini, small_disk, thousands, undisturbed
from support.repeated_runs import data, runtime, served

__all__ = ["data", "finished", "mini", "runtime", "served", "small_disk", "thousands", "undisturbed"]
