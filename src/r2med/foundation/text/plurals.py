"""Write a count with its noun: 1 query, 2 queries."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun in the singular or the plural. The default plural has an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def shown_bytes(number: float) -> str:
    """Return a number of bytes with three digits and a unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB"


def clock_time(seconds: float) -> str:
    """Return seconds as on a clock, such as 1:40:00 or 2:12; from two days on, the number of days."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours / 24:.0f} days"
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
