"""A small dataset, what an undisturbed evaluation of it gives, and a small disk."""

from support.disturbed_runs import finished, mini, small_disk, undisturbed

__all__ = ["finished", "mini", "small_disk", "undisturbed"]
