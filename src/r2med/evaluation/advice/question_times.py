"""Time single questions of a system, as a server answers them."""

from __future__ import annotations

import time

from r2med.data import Dataset
from r2med.foundation.runtime.runtime import Runtime
from r2med.systems.system import System

QUESTIONS = 32
SECONDS = 10.0
"""Number of questions that are asked one by one, and the time limit in seconds."""


def question_seconds(system: System, dataset: Dataset, depth: int, runtime: Runtime) -> list[float]:
    """Return the seconds of some questions of a dataset: the same ones for every system, spread over the dataset."""
    questions = [query.text for query in dataset.queries[:: max(1, len(dataset.queries) // QUESTIONS)][:QUESTIONS]]
    limit = runtime.models.limit
    try:
        live = system.live(dataset)
        live.answer(questions[0], depth)  # the first question opens or compiles things, so it is not measured
        seconds: list[float] = []
        for question in questions:
            started = time.perf_counter()
            live.answer(question, depth)
            seconds.append(time.perf_counter() - started)
            if sum(seconds) > SECONDS:
                break
        return seconds
    finally:
        runtime.models.limit = limit  # a live system keeps all its models
