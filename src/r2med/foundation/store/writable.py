"""Check that a folder can be written to, before any work is done."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from r2med.foundation.core.errors import UserError


def check_writable(out: Path, setting: object) -> None:
    """Raise UserError if a folder cannot be made or written to. The error names the setting that chooses another.

    The folder is not made: what is checked next may find that there is nothing to write.
    """
    try:
        existing = next(each for each in (out, *out.absolute().parents) if each.exists())
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write to {out} ({reason}): choose another folder with {setting}") from None
