"""Encoders behind an API: texts go out in batches, every vector that comes back is kept, nothing is paid for twice."""

from r2med.encoders.api.encoder import ApiEncoder

__all__ = ["ApiEncoder"]
