"""Check that a folder can be written to, before any work is done."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from r2med.foundation.core.errors import UserError


def check_writable(out: Path, setting: object) -> None:
    """Raise UserError if a folder cannot be made or written to. The error names the setting that chooses another."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write to {out} ({reason}): choose another folder with ", setting) from None
