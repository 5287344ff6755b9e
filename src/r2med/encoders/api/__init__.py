"""Encoders behind an API: texts go out in batches, every vector that comes back is kept, nothing is paid for twice."""

from r2med.encoders.api.encoder import ApiEncoder, open_api_encoder

__all__ = ["ApiEncoder", "open_api_encoder"]
