"""Exported runs: each repeat has its own file, whose name says which one it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med.evaluation.records.collection import StoredRecord
from r2med.evaluation.running.run_export import stem_with_repeat
from support.records import record


@pytest.mark.parametrize(("repeat", "name"), [(0, "x-1234567890"), (2, "x-1234567890-repeat-2")])
def test_the_name_of_a_file_has_the_number_of_a_later_repeat(repeat: int, name: str) -> None:
    kept = StoredRecord(record("x", "demo/Biology", [0.5], repeat=repeat, varies=True), Path("x-1234567890.json"))
    assert stem_with_repeat(kept) == name
