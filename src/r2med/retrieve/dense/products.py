"""Queries × documents by matrix product in full float32: NumPy, or torch on the CPU or a GPU."""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.errors import MissingExtraError, UserError

Product = Callable[[Vectors, Vectors], None]
"""Writes the scores of all queries with a block of documents: product(documents, out)."""


def open_product(queries: Vectors, device: str) -> Product:
    """Return the product of the queries on a device: auto, numpy, cpu, cuda, cuda:1, …"""
    has_torch = importlib.util.find_spec("torch") is not None
    if device == "numpy" or (device == "auto" and not has_torch):
        return _numpy_product(queries)
    if not has_torch:
        raise MissingExtraError(f"searching on {device}", "dense")
    return _torch_product(queries, device)


def _numpy_product(queries: Vectors) -> Product:
    def product(documents: Vectors, out: Vectors) -> None:
        with np.errstate(all="ignore"):  # what is not finite is found in the scores, and named
            np.matmul(queries, documents.T, out=out)

    return product


def _torch_product(queries: Vectors, device: str) -> Product:
    import torch

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        here = _shared(queries).to(device)
    except (RuntimeError, AssertionError) as error:  # torch's way to say "not compiled with CUDA"
        reason = str(error).splitlines()[0]
        raise UserError(f"cannot search on {device!r}: {reason} (auto, numpy, cpu, cuda or cuda:N)") from error

    def product(documents: Vectors, out: Vectors) -> None:
        scores = torch.from_numpy(out)
        with torch.inference_mode(), torch.autocast(here.device.type, enabled=False), _full_precision():
            if here.device.type == "cpu":
                torch.matmul(here, _shared(documents).T, out=scores)
            else:
                scores.copy_(here @ _shared(documents).to(here.device).T)

    return product


def _shared(array: Vectors) -> Any:
    """Return a tensor over the same memory. torch warns of read-only arrays; this one is only read."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """Keep TF32 and bfloat16 out of float32 products, whatever the program around us chose for its models."""
    import torch

    parts: list[Any] = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
    if all(hasattr(part, "fp32_precision") for part in parts):
        before = [part.fp32_precision for part in parts]
        try:
            for part in parts:
                part.fp32_precision = "ieee"
            yield
        finally:
            for part, precision in zip(parts, before, strict=True):
                part.fp32_precision = precision
    else:  # before torch 2.9
        precision = torch.get_float32_matmul_precision()
        try:
            torch.set_float32_matmul_precision("highest")
            yield
        finally:
            torch.set_float32_matmul_precision(precision)
