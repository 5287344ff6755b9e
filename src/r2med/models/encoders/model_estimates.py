"""Estimate what a model needs for a plan: the download, the memory, and the time to read texts. Nothing is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from r2med.foundation.core.installation import install_extra, missing_part
from r2med.foundation.core.needs import Needs, gpu_memory, parameter_count
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders.devices import devices
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS
from r2med.models.encoders.encoder import modules_of_loader
from r2med.models.encoders.weights import is_here, is_offline

MOST_TOKENS = 4
"""A text has at most four times the tokens that are estimated from its length: one for each byte."""
CPU_OPERATIONS, GPU_OPERATIONS = 6e10, 1.5e14
"""Approximate operations per second of a CPU core and of a GPU, for the order of magnitude of a time."""


def model_needs(
    stage: str, name: str, known: Mapping[str, Any], resolve: Callable[[str], object], tokens: int, setup: Setup
) -> Needs:
    """Return what the model of a stage needs to read this many tokens. Raises UserError if there is no such model."""
    card = known.get(name)
    note = "the model loads its weights itself" if name.startswith(("py:", "mteb:")) else ""
    if card is None:
        source = name.partition(":")[0]
        if source not in ("hf", "mteb"):  # These would use the network.
            resolve(name)
        missing = "" if source in ("py", "mteb") else _missing_part(setup)
        fetch = None if source == "hf" else 0.0
        return Needs(stage, seconds=None, fetch=fetch, memory=None, missing=missing, note=note)
    if card.loader in EMBEDDING_APIS:
        return Needs(stage, seconds=None, missing=EMBEDDING_APIS[card.loader].missing(setup))
    size = parameter_count(card.parameters)
    return Needs(
        stage,
        seconds=None if size is None else 2 * size * tokens / _operations(setup),
        fetch=0.0 if is_here(card, setup) else _download(size),
        memory=gpu_memory(card.parameters),
        missing=_missing_part(setup) or ("" if is_here(card, setup) or not is_offline() else AWAY),
        note=note,
    )


AWAY = "its weights are not on this machine, and the hub is switched off"


def _download(parameters: float | None) -> float | None:
    """Return the approximate bytes of the weights. Large models are published in half precision."""
    return None if parameters is None else parameters * (4 if parameters < 1e9 else 2)


def _missing_part(setup: Setup) -> str:
    """Return what installs the packages that load models; empty if they are there."""
    part = missing_part(modules_of_loader("transformers", setup))
    return install_extra(part) if part else ""


def _operations(setup: Setup) -> float:
    """Return the approximate operations per second of the device."""
    return GPU_OPERATIONS if devices(setup.device)[0].startswith("cuda") else _cpu_operations()


def gpu_speed_up() -> float:
    """Return the approximate factor by which a GPU is faster than the CPU of this machine."""
    return GPU_OPERATIONS / _cpu_operations()


def _cpu_operations() -> float:
    return CPU_OPERATIONS * (os.cpu_count() or 1)
