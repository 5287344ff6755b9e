"""A pytest plugin that prints each test file pytest would collect, and imports none: `-p support.collected_files`."""

from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Print a test file and leave it out; pytest's own rules decide about everything else."""
    if collection_path.is_dir() or not collection_path.match("test_*.py"):
        return None
    print(f"collected: {collection_path}")
    return True
