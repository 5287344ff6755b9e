"""Warn before texts that seem to hold personal data are sent to another machine."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from r2med.foundation.core.notices import Setting
from r2med.foundation.text.identifiers import identifier_warning

log = logging.getLogger("r2med")


def warn_before_sending(what: str, receiver: str, texts: Iterable[str], warned: set[str]) -> None:
    """Log a warning if texts that are about to be sent seem to hold personal data. `what` sends them to `receiver`.

    The receiver is added to `warned`, so that later batches of the same work are not reported again.
    """
    if warning := identifier_warning(f"{what} sends to {receiver}", texts):
        warned.add(receiver)
        log.warning("%s; Ctrl-C stops, %s refuses", warning, Setting("Setup", offline=True))
