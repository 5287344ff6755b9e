"""What `r2med cite` shows."""

from __future__ import annotations

from r2med.foundation.text.terminal_text import printable


def show_citation(text: str) -> None:
    """Print BibTeX."""
    for line in text.splitlines():
        print(printable(line))
