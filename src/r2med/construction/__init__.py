"""Build a benchmark like R2MED: sources, steps, review and publication."""
