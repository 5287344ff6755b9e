"""Write a count with its noun: 1 query, 2 queries."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun in the singular or the plural. The default plural has an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
