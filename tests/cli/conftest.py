"""A small dataset, what an undisturbed evaluation of it gives, and a small disk, for commands that are disturbed."""

from support.disturbed_runs import finished, mini, small_disk, thousands, undisturbed

__all__ = ["finished", "mini", "small_disk", "thousands", "undisturbed"]
