"""Lines for readers of scores about records that came from a pack and were not scored on this machine."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.evaluation.records.record import Record


def unpacked_records(records: Iterable[Record]) -> list[str]:
    """Return a line that names the systems with such records; nothing if there are none."""
    systems = dict.fromkeys(record.display_name for record in records if record.unpacked)
    if not systems:
        return []
    return [f"{', '.join(systems)}: from a pack, not scored on this machine; the command that made it scores it again"]
