"""Type a command in this process, where only what it prints matters."""

from __future__ import annotations

from r2med.cli.app import command


def typed(*words: object) -> int:
    """Run a command and return its exit code. Its errors are raised."""
    return int(command()([str(word) for word in words], prog_name="r2med", standalone_mode=False) or 0)
