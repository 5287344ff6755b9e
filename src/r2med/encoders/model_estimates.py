"""What a model would take: bytes to download and seconds to read texts, about. For plans; nothing is loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from r2med.core.cards import parameter_count
from r2med.encoders.devices import devices
from r2med.encoders.weights import is_here, is_offline
from r2med.runtime.setup import Setup

TOKENS = 300
"""Tokens of a passage, about."""
CPU, GPU = 6e10, 1.5e14
"""Operations a second of a core and of a GPU, about: for the order of magnitude of a time."""


def bytes_to_fetch(
    name: str, known: Mapping[str, Any], resolve: Callable[[str], object], setup: Setup
) -> tuple[float | None, str]:
    """Return the bytes to fetch, about, and what is missing. Raises UserError if the name means no model."""
    card = known.get(name)
    if card is None:
        source = name.partition(":")[0]
        if source not in ("hf", "mteb"):  # these would ask the network
            resolve(name)
        return (None if source == "hf" else 0.0), ""
    if card.loader in ("openai", "voyage") or is_here(card, setup):
        return 0.0, ""
    size = parameter_count(card.parameters)
    missing = "its weights are not here, and the hub is switched off" if is_offline() else ""
    return (None if size is None else size * (4 if size < 1e9 else 2)), missing


def own_weights(name: str) -> str:
    """Return a remark for models that see to their weights themselves: a user's objects, and those of MTEB."""
    return "; weights are the model's own matter" if name.startswith(("py:", "mteb:")) else ""


def reading_seconds(known: Mapping[str, Any], name: str, passages: int, setup: Setup) -> float | None:
    """Return how long a model reads this many passages, about; None where its size is not known."""
    card = known.get(name)
    size = parameter_count(card.parameters) if card is not None else None
    if size is None:
        return None
    speed = GPU if devices(setup.device)[0].startswith("cuda") else CPU * (os.cpu_count() or 1)
    return 2 * size * TOKENS * passages / speed
