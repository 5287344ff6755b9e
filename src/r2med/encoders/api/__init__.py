"""Encoders behind an API: texts go out in batches, every vector that comes back is kept, nothing is paid for twice."""
