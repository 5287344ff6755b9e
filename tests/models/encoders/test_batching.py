"""Batches by token budget: bounded size, longest texts first, rows in input order, smaller when memory runs out."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.models.encoders.batching import DoesNotFitError, Worker, encode_in_batches, longest_first, split
from r2med.models.encoders.encoder import NotFiniteError
from support.processes import PATIENCE

LENGTHS = st.lists(st.integers(0, 50), min_size=1, max_size=60)


def rows_of(lengths, seen=None, limit=None):
    """An encoder whose rows identify their texts. It runs out of memory above a limit."""

    def rows(batch):
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
def test_no_batch_exceeds_the_budget_unless_a_single_text_does(lengths, budget):
    batches = list(split(longest_first(lengths), lengths, budget))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= budget


@given(LENGTHS, st.integers(1, 200))
def test_rows_come_back_in_input_order(lengths, budget):
    seen = []
    assert np.array_equal(encode_in_batches(lengths, [Worker(rows_of(lengths, seen), budget)]), expected(lengths))
    assert [lengths[i] for batch in seen for i in batch] == sorted(lengths, reverse=True)


@given(LENGTHS, st.integers(50, 200), st.integers(1, 3))
def test_out_of_memory_halves_the_budget_and_continues(lengths, limit, devices):
    workers = [Worker(rows_of(lengths, limit=limit), 100_000) for _ in range(devices)]
    assert np.array_equal(encode_in_batches(lengths, workers), expected(lengths))


def test_a_lowered_budget_is_kept():
    lengths, attempts = [10] * 100, []
    inner = rows_of(lengths, limit=300)

    def rows(batch):
        attempts.append(len(batch))
        return inner(batch)

    worker = Worker(rows, 1000)
    encode_in_batches(lengths, [worker])
    assert attempts == [100, 50, 25, 25, 25, 25]
    assert worker.budget == 250


def test_a_single_text_that_does_not_fit_gives_a_one_line_error():
    with pytest.raises(DoesNotFitError, match="one text of 90 tokens does not fit"):
        encode_in_batches([5, 90], [Worker(rows_of([5, 90], limit=50), 1000)])


def test_other_errors_are_raised():
    def rows(batch):
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        encode_in_batches([1, 2], [Worker(rows, 10)])


def test_several_devices_share_the_work():
    lengths, seen, both = [1] * 40, [[], []], threading.Barrier(2, timeout=PATIENCE)

    def worker(number):
        inner = rows_of(lengths, seen[number])

        def rows(batch):
            if not seen[number]:
                both.wait()  # each device must have got something before either goes on
            return inner(batch)

        return Worker(rows, 4)

    assert np.array_equal(encode_in_batches(lengths, [worker(0), worker(1)]), expected(lengths))
    assert all(seen)


def test_an_error_on_one_device_stops_the_others():
    def fails(batch):
        raise RuntimeError("device lost")

    done = []

    def works(batch):
        done.append(batch)
        return np.zeros((len(batch), 2), dtype=np.float32)

    with pytest.raises(RuntimeError, match="device lost"):
        encode_in_batches([1] * 100_000, [Worker(fails, 1), Worker(works, 1)])
    assert len(done) < 100_000


def test_the_error_for_a_vector_that_is_not_finite_names_its_text():
    def rows(batch):
        return np.asarray([[np.inf if i == 3 else 1.0, 0.0] for i in batch], dtype=np.float32)

    with pytest.raises(NotFiniteError, match="text 4") as caught:
        encode_in_batches([9, 5, 7, 2, 8], [Worker(rows, 20)])
    assert caught.value.index == 3


def test_large_finite_entries_are_accepted():
    def rows(batch):
        return np.full((len(batch), 2), 3e38, dtype=np.float32)

    assert encode_in_batches([1], [Worker(rows, 5)]).shape == (1, 2)
