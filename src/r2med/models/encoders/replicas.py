"""Replicas: copies of one model, one per device, that share batches of texts; and the models that stay in memory.

Encoders and cross-encoders with local weights are built on this module. It handles devices and precision, batches,
out-of-memory errors and the cost. Texts are sorted by length and batched by a token budget, which gives little padding
and bounded memory; rows keep the input order.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import numpy as np

from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices
from r2med.models.encoders.encoder import Vectors, batch_receiver, check_finite
from r2med.models.encoders.ragged import Ragged

Model = TypeVar("Model")
Loaded = TypeVar("Loaded")

Rows = Callable[[Model, Sequence[int]], Vectors]
"""Function that encodes the texts at some positions with one copy of a model, one row each."""


class DoesNotFitError(UserError):
    """Error for a single text that does not fit into memory, so that the batch cannot be halved."""


class Replicas(Generic[Model]):
    """One copy of a model on each device of the setup."""

    def __init__(
        self,
        setup: Setup,
        load: Callable[[str, str], Model],
        merged: bool = False,
        shares: Callable[[Model], bool] | None = None,
    ) -> None:
        """Load the copies. `load(device, dtype)` returns one of them. `merged`: it merges an adapter into them.

        `shares(model)` is False if only the first copy would be used, so that no other is loaded.
        """
        names, dtype = devices.placement(setup, merged)
        self.first = load(names[0], dtype)
        """One of the copies, for properties that all copies share."""
        others = names[1:] if shares is None or shares(self.first) else ()
        self.models = [self.first, *(load(name, dtype) for name in others)]
        # A batch fills the device but fits its caches.
        self._budgets = [setup.tokens_per_batch or (8192 if name.startswith("cuda") else 4096) for name in names]

    def run(
        self, lengths: Sequence[int], rows: Rows[Model], cut: Sequence[bool] = (), estimated: bool = False
    ) -> Ragged:
        """Return one row per text, in their order, and the cost.

        `lengths` are the numbers of tokens of the texts. `cut` says which texts were cut. Lengths that are `estimated`
        are not part of the cost. Each copy takes the next batch when it is free. Raises DoesNotFitError if one text
        alone is too long for the device, and NotFiniteError for a row with NaN or infinity.
        """
        batches = _Batches(lengths)
        if len(self.models) == 1:
            self._encode(0, batches, rows)
        else:
            with ThreadPoolExecutor(len(self.models), thread_name_prefix="encode") as pool:
                for done in [pool.submit(self._encode, number, batches, rows) for number in range(len(self.models))]:
                    done.result()
        check_finite(batches.vectors)
        tokens = 0 if estimated else sum(lengths)
        return Ragged.single(batches.vectors, Cost(texts=len(lengths), tokens=tokens, cut=sum(cut)))

    def _encode(self, number: int, batches: _Batches, rows: Rows[Model]) -> None:
        """Encode batches with one copy until none is left. A batch that does not fit into memory is halved."""
        try:
            while batch := batches.take(self._budgets[number]):
                vectors = None
                try:
                    vectors = rows(self.models[number], batch)
                except Exception as error:
                    if not devices.is_out_of_memory(error):
                        raise
                    if len(batch) == 1:
                        raise _does_not_fit(batches.lengths[batch[0]]) from None
                if vectors is not None:
                    batches.put(batch, vectors)
                    continue
                # The traceback is gone here, and with it the memory that the failed attempt still held.
                devices.release()
                # A batch size that did not fit once is not tried again.
                self._budgets[number] = max(1, batches.lengths[batch[0]] * len(batch) // 2)
                batches.give_back(batch)
        except BaseException:
            batches.drop()
            raise


def _does_not_fit(tokens: int) -> DoesNotFitError:
    return DoesNotFitError(
        f"out of memory: one text of {tokens:,} tokens does not fit on the device; use another device (--device), a "
        "smaller dtype (--dtype) or a smaller model"
    )


class _Batches:
    """The texts that no device has taken yet, and the rows of the others."""

    def __init__(self, lengths: Sequence[int]) -> None:
        self.lengths = lengths
        # Longest first, so that an out-of-memory error occurs in the first batch.
        self._left = deque(np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable").tolist())
        self.vectors: Vectors = np.empty((0, 0), dtype=np.float32)
        """Allocated when the first rows show their width."""
        self._receiver = batch_receiver()
        self._lock = threading.Lock()

    def take(self, budget: int) -> list[int]:
        """Return the positions of the next texts, whose padded size (longest text times count) is within the budget.

        A text that is longer than the budget becomes a batch of its own. At the end the batch is empty.
        """
        with self._lock:
            count = max(1, budget // max(1, self.lengths[self._left[0]])) if self._left else 0
            return [self._left.popleft() for _ in range(min(count, len(self._left)))]

    def give_back(self, batch: Sequence[int]) -> None:
        """Take back a batch that did not fit into memory. Its texts are the next again."""
        with self._lock:
            self._left.extendleft(reversed(batch))

    def put(self, batch: Sequence[int], rows: Vectors) -> None:
        """Save the rows of a batch."""
        with self._lock:
            if not len(self.vectors):
                self.vectors = np.empty((len(self.lengths), rows.shape[1]), dtype=np.float32)
            self.vectors[np.asarray(batch)] = rows
            if self._receiver is not None:
                self._receiver(len(batch))

    def drop(self) -> None:
        """Leave nothing for other devices. Otherwise they would go on for hours before an error is shown."""
        with self._lock:
            self._left.clear()


def cached_model(key: Hashable, runtime: Runtime, load: Callable[[], Loaded]) -> Loaded:
    """Return the model of this key, loaded once for all datasets. The least recently used models are dropped first.

    If the model does not fit beside the others, they are dropped. So encoders must not keep a reference to it. Raises
    UserError if it does not fit at all.
    """

    for _ in range(2):
        try:
            return runtime.models.get(key, load)
        except Exception as error:
            if not devices.is_out_of_memory(error):
                raise
        # The traceback is gone here, and with it the memory that the failed attempt still held.
        runtime.models.clear()
        gc.collect()
        devices.release()
    raise UserError(
        "the model does not fit into the memory of the device; use another device (--device) or dtype (--dtype)"
    )
