"""Check a file beside a record: it must have the bytes that the record was made with."""

from __future__ import annotations

from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import sha256


def checked_file(file: Path, digest: str, again: str) -> Path:
    """Return the path of a file beside a record. Every command that reads such a file asks for its path here.

    `digest` is the SHA-256 that the record states, and `again` is the end of the message: how to make the file again.
    Raises UserError if the file is missing, cannot be read, or was changed.
    """
    if not file.is_file():  # a pipe would be read for ever
        raise UserError(f"{file} is missing: {again}")
    try:
        is_same = sha256(file) == digest
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}): {again}") from None
    if not is_same:
        raise UserError(f"{file} was changed after its record was written: {again}")
    return file
