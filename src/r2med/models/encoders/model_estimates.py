"""Estimate the download size and the reading time of a model, for plans. Nothing is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from r2med.foundation.core.installation import install_extra, missing_part
from r2med.foundation.core.plan import gpu_memory, parameter_count
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders.devices import devices
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS
from r2med.models.encoders.encoder import modules_of_loader
from r2med.models.encoders.weights import is_here, is_offline

PASSAGE_TOKENS = 300
"""Approximate number of tokens in a passage."""
CPU_OPERATIONS, GPU_OPERATIONS = 6e10, 1.5e14
"""Approximate operations per second of a CPU core and of a GPU, for the order of magnitude of a time."""


def bytes_to_fetch(
    name: str, known: Mapping[str, Any], resolve: Callable[[str], object], setup: Setup
) -> tuple[float | None, str]:
    """Return the approximate bytes to download, and what is missing. Raises UserError if there is no such model."""
    card = known.get(name)
    if card is None:
        source = name.partition(":")[0]
        if source not in ("hf", "mteb"):  # These would use the network.
            resolve(name)
        return (None if source == "hf" else 0.0), "" if source in ("py", "mteb") else _missing_part(setup)
    if card.loader in EMBEDDING_APIS:
        return 0.0, EMBEDDING_APIS[card.loader].missing(setup)
    if is_here(card, setup):
        return 0.0, _missing_part(setup)
    size = parameter_count(card.parameters)
    away = "its weights are not on this machine, and the hub is switched off" if is_offline() else ""
    return (None if size is None else size * (4 if size < 1e9 else 2)), _missing_part(setup) or away


def _missing_part(setup: Setup) -> str:
    """Return what installs the packages that load models; empty if they are there."""
    part = missing_part(modules_of_loader("transformers", setup))
    return install_extra(part) if part else ""


def model_memory(name: str, known: Mapping[str, Any]) -> float | None:
    """Return the estimated bytes of GPU memory of a model; 0 behind an API, None if its size is unknown."""
    card = known.get(name)
    if card is None:
        return None
    return 0.0 if card.loader in EMBEDDING_APIS else gpu_memory(card.parameters)


def own_weights(name: str) -> str:
    """Return a remark for models that load their weights themselves: a user's objects and MTEB models."""
    return "; the model loads its weights itself" if name.startswith(("py:", "mteb:")) else ""


def reading_seconds(known: Mapping[str, Any], name: str, passages: int, setup: Setup) -> float | None:
    """Return the approximate seconds that a model needs for this many passages, or None if its size is unknown."""
    card = known.get(name)
    size = parameter_count(card.parameters) if card is not None else None
    if size is None:
        return None
    speed = GPU_OPERATIONS if devices(setup.device)[0].startswith("cuda") else _cpu_operations()
    return 2 * size * PASSAGE_TOKENS * passages / speed


def gpu_speed_up() -> float:
    """Return the approximate factor by which a GPU is faster than the CPU of this machine."""
    return GPU_OPERATIONS / _cpu_operations()


def _cpu_operations() -> float:
    return CPU_OPERATIONS * (os.cpu_count() or 1)
