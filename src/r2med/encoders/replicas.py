"""Replicas: copies of one model, one per device, that share batches of texts; and the models that stay in memory.

Everything that runs weights here is built on it, encoders and cross-encoders alike: the devices and the precision, the
batches, what happens when memory runs out, what the work took.
"""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from r2med.cost import Cost
from r2med.encoders import devices
from r2med.encoders.batching import Worker, encode_in_batches
from r2med.encoders.encoder import Encoded, Vectors, batch_receiver
from r2med.errors import UserError
from r2med.setup import Setup

Model = TypeVar("Model")
Loaded = TypeVar("Loaded")


class Replicas(Generic[Model]):
    """One copy of a model on each device of the setup."""

    def __init__(self, setup: Setup, load: Callable[[str, str], Model]) -> None:
        """Load the copies: `load(device, dtype)` returns one of them."""
        self.devices, self.dtype = devices.placement(setup)
        self.models = [load(device, self.dtype) for device in self.devices]
        self._budgets = [devices.tokens_per_batch(setup.tokens_per_batch, device) for device in self.devices]

    @property
    def first(self) -> Model:
        """One of the copies, to ask what all of them have in common."""
        return self.models[0]

    def run(
        self,
        lengths: Sequence[int],
        rows: Callable[[Model, Sequence[int]], Vectors],
        cut: Sequence[bool] = (),
    ) -> Encoded:
        """Return one row per text, in their order, and what they took.

        `lengths` are the tokens of each text, `cut` says which of them were cut. `rows(model, positions)` encodes the
        texts at some positions with one of the copies. Raises DoesNotFitError if one text alone is too long for the
        device, NotFiniteError for a row with NaN or infinity in it.
        """
        receiver = batch_receiver()

        def cost(positions: Sequence[int]) -> Cost:
            tokens = sum(lengths[position] for position in positions)
            return Cost(texts=len(positions), tokens=tokens, cut=sum(cut[position] for position in positions if cut))

        def finished(positions: Sequence[int], vectors: Vectors) -> None:
            if receiver is not None:
                receiver(positions, Encoded(vectors, cost(positions)))

        workers = [
            Worker(partial(rows, model), budget, devices.is_out_of_memory, devices.release)
            for model, budget in zip(self.models, self._budgets, strict=True)
        ]
        vectors = encode_in_batches(lengths, workers, finished)
        self._budgets = [worker.budget for worker in workers]  # what did not fit once is not tried again
        return Encoded(vectors, cost(range(len(lengths))))


KEPT = 3
"""Two towers of one model and one more, or the dense parts of a fusion: what a run goes back and forth between."""

_kept: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.RLock()


def cached_model(key: Hashable, setup: Setup, load: Callable[[], Loaded]) -> Loaded:
    """Return what `load` returned for this key and setup: loaded once for all datasets, the least used given up first.

    If it does not fit beside the others, they go; encoders must not hold on to it, or it could not be given up.
    Raises UserError if it does not fit at all.
    """
    whole = (key, setup.device, setup.dtype, setup.backend, setup.tokens_per_batch, setup.trust_remote_code)
    with _lock:
        if whole not in _kept:
            while len(_kept) >= KEPT:
                _kept.popitem(last=False)
            model = _attempt(load)
            if model is None and _kept:
                forget_models()
                model = _attempt(load)
            if model is None:
                raise UserError("the model does not fit into the device's memory: use another --device or --dtype")
            _kept[whole] = model
        _kept.move_to_end(whole)
        kept: Loaded = _kept[whole]
        return kept


def _attempt(load: Callable[[], Loaded]) -> Loaded | None:
    try:
        return load()
    except Exception as error:
        if not devices.is_out_of_memory(error):
            raise
        return None


def forget_models() -> None:
    """Give up all models in memory."""
    with _lock:
        _kept.clear()
        gc.collect()
        devices.release()
