"""Versions of libraries: all blocks around the work note those that made what it uses."""

from r2med.foundation.store import library_versions
from r2med.foundation.store.library_versions import note_versions, noted_versions


def test_versions_reach_the_block_around_too() -> None:
    with noted_versions() as outer, noted_versions() as inner:
        note_versions({"versions": {library_versions.LIBRARIES[0]: ["1", 2], "numpy": ["3"]}})
        note_versions({"versions": "nonsense"})
    assert inner == outer == {library_versions.LIBRARIES[0]: {"1"}}
