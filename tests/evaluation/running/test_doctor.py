"""The doctor says what is here and what is missing, and shows no key."""

from __future__ import annotations

import os
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from r2med import UserError, __version__
from r2med.evaluation.running.doctor import diagnosed
from r2med.foundation.store import Store, default_store
from support.loopback import listening, nobody_listening


def test_versions_devices_extras_and_the_cache_are_told(store: Store) -> None:
    diagnosis = diagnosed("", store)
    assert diagnosis.versions["r2med"] == __version__
    assert diagnosis.devices and diagnosis.cores >= 1
    assert diagnosis.extras["models"] == ()
    assert diagnosis.cache == store.root and diagnosis.cache_free > 0


def test_a_server_that_answers_is_told_from_one_that_is_not_there() -> None:
    with listening(BaseHTTPRequestHandler) as there, nobody_listening() as gone:  # it knows no method, and says so
        [answering] = diagnosed(f"{there}/v1", default_store()).endpoints.values()
        [silent] = diagnosed(f"{gone}/v1", default_store()).endpoints.values()
    assert answering == ""
    assert "failed" in silent


@pytest.mark.parametrize("url", ["localhost:8000", "http://me:secret@localhost/v1"])
def test_what_is_no_address_is_one_line(url: str) -> None:
    with pytest.raises(UserError, match="base URL") as told:
        diagnosed(url, default_store())
    assert "secret" not in str(told.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written_to_has_no_room(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert diagnosed("", Store(tmp_path / "store")).cache_free == 0
