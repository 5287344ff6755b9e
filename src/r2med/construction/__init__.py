"""Build a benchmark of R2MED's kind: sources, steps, review, publication."""
