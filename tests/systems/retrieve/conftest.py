"""Run the GPU code of exact dense search on machines without a GPU."""

import pytest

from r2med.systems.retrieve.exact import exact_search


@pytest.fixture(autouse=True)
def _gpu_code_runs_on_the_cpu(monkeypatch):
    real = exact_search.gpu_of
    monkeypatch.setattr(exact_search, "gpu_of", lambda device: "cpu" if device == "gpu" else real(device))
