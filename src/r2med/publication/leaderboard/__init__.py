"""Published and expected results, their reproduction, and entries that others submit."""
