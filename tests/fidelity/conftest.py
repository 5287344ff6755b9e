"""What the fidelity tests stand on."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from support.original import ENCODERS


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Compute in one thread: for models this small, threads that wait for each other are all that takes time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def encoder_weights(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of an encoder's tiny weights, made when it is first asked for."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp("weights") / name
        ENCODERS[name].make(folder)
        return folder

    return made
