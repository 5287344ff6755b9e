"""What `r2med board` shows: the page to open."""

from __future__ import annotations

from pathlib import Path

from r2med.foundation.text.terminal_text import printable


def show_board(page: Path) -> None:
    """Print the page to open."""
    print(printable(f"The board: {page}"))
