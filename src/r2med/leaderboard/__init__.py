"""Published results, expected results, reproducing them, and entries of others."""
