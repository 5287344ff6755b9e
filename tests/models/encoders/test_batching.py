"""Batches by token budget: bounded size, longest texts first, rows in input order, smaller when memory runs out."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders.encoder import NotFiniteError, receiving
from r2med.models.encoders.replicas import DoesNotFitError, Replicas
from support.processes import PATIENCE

LENGTHS = st.lists(st.integers(0, 50), min_size=1, max_size=60)


def replicas(budget, devices=1):
    """Return replicas whose models are numbers, on the CPU."""
    numbers = iter(range(devices))
    setup = Setup(device=",".join(["cpu"] * devices), tokens_per_batch=budget)
    return Replicas(setup, lambda device, dtype: next(numbers))


def rows_of(lengths, seen=None, limit=None):
    """An encoder whose rows identify their texts. It runs out of memory above a limit."""

    def rows(model, batch):
        padded = max(1, max(lengths[i] for i in batch)) * len(batch)
        if limit is not None and padded > limit:
            raise MemoryError
        if seen is not None:
            seen.append(list(batch))
        return np.asarray([[i, lengths[i]] for i in batch], dtype=np.float32)

    return rows


def expected(lengths):
    return np.asarray(list(enumerate(lengths)), dtype=np.float32)


@given(LENGTHS, st.integers(1, 200))
def test_no_batch_exceeds_the_budget_unless_a_single_text_does_and_rows_keep_the_order(lengths, budget):
    seen = []
    encoded = replicas(budget).run(lengths, rows_of(lengths, seen))
    assert np.array_equal(encoded.vectors, expected(lengths))
    assert (encoded.cost.texts, encoded.cost.tokens) == (len(lengths), sum(lengths))
    assert [lengths[i] for batch in seen for i in batch] == sorted(lengths, reverse=True)
    for batch in seen:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= budget


@given(LENGTHS, st.integers(50, 200), st.integers(1, 3))
def test_out_of_memory_halves_the_budget_and_continues(lengths, limit, devices):
    encoded = replicas(100_000, devices).run(lengths, rows_of(lengths, limit=limit))
    assert np.array_equal(encoded.vectors, expected(lengths))


def test_a_lowered_budget_is_kept():
    lengths, attempts = [10] * 100, []
    inner = rows_of(lengths, limit=300)

    def rows(model, batch):
        attempts.append(len(batch))
        return inner(model, batch)

    model = replicas(1000)
    model.run(lengths, rows)
    assert attempts == [100, 50, 25, 25, 25, 25]
    model.run(lengths, rows)
    assert attempts[6:] == [25, 25, 25, 25]


def test_a_single_text_that_does_not_fit_gives_a_one_line_error():
    with pytest.raises(DoesNotFitError, match="one text of 90 tokens does not fit"):
        replicas(1000).run([5, 90], rows_of([5, 90], limit=50))


def test_other_errors_are_raised():
    def rows(model, batch):
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        replicas(10).run([1, 2], rows)


def test_several_devices_share_the_work_and_report_each_batch():
    lengths, seen, both, received = [1] * 40, [[], []], threading.Barrier(2, timeout=PATIENCE), []

    def rows(model, batch):
        if not seen[model]:
            both.wait()  # each device must have got something before either goes on
        return rows_of(lengths, seen[model])(model, batch)

    with receiving(received.append):
        assert np.array_equal(replicas(4, 2).run(lengths, rows).vectors, expected(lengths))
    assert all(seen) and received == [4] * 10


def test_an_error_on_one_device_stops_the_others():
    done = []

    def rows(model, batch):
        if model == 0:
            raise RuntimeError("device lost")
        done.append(batch)
        return np.zeros((len(batch), 2), dtype=np.float32)

    with pytest.raises(RuntimeError, match="device lost"):
        replicas(1, 2).run([1] * 100_000, rows)
    assert len(done) < 100_000


def test_the_error_for_a_vector_that_is_not_finite_names_its_text():
    def rows(model, batch):
        return np.asarray([[np.inf if i == 3 else 1.0, 0.0] for i in batch], dtype=np.float32)

    with pytest.raises(NotFiniteError, match="text 4") as caught:
        replicas(20).run([9, 5, 7, 2, 8], rows)
    assert caught.value.index == 3


def test_large_finite_entries_are_accepted():
    def rows(model, batch):
        return np.full((len(batch), 2), 3e38, dtype=np.float32)

    assert replicas(5).run([1], rows).vectors.shape == (1, 2)


def test_a_model_that_does_not_share_batches_is_loaded_on_one_device():
    for shares, count in ((lambda first: True, 3), (lambda first: False, 1)):
        loaded = []
        Replicas(Setup(device="cpu,cpu,cpu"), lambda device, dtype, loaded=loaded: loaded.append(device), shares=shares)
        assert len(loaded) == count
