"""What the fidelity tests stand on."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from support.original import ENCODERS


@pytest.fixture(scope="session")
def encoder_weights(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of an encoder's tiny weights, made when it is first asked for."""

    @cache
    def made(name: str) -> Path:
        folder = tmp_path_factory.mktemp("weights") / name
        ENCODERS[name].make(folder)
        return folder

    return made
