"""The settings of a run, and what a process holds while it works."""
