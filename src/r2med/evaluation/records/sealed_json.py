"""Write a pydantic model as JSON with a checksum, and read it back only if nothing was changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest
from r2med.foundation.store.files import write_json

Sealed = TypeVar("Sealed", bound=BaseModel)


class OtherFormatError(UserError):
    """A record of an earlier or later version."""


def strict_json(content: bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError if a key occurs twice: tools differ in which one they read."""
    return json.loads(content, object_pairs_hook=_without_twins)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def write_sealed(model: BaseModel, path: Path) -> None:
    """Write a model with its checksum to a file, completely or not at all."""
    body = model.model_dump(mode="json")
    write_json(path, {**body, "checksum": digest(body)})


def record_bytes(path: Path | str) -> bytes:
    """Return the bytes of a record file. Raises UserError if there is no such file."""
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise UserError(f"{path}: there is no such record") from None


def parse_sealed(kind: type[Sealed], content: bytes, path: Path | str, file_format: int, command: str) -> Sealed:
    """Return the model in the bytes of a file. `path` is its name in messages, and `command` makes it again.

    The word SYSTEM in the command becomes the system of the record. Raises UserError if the file was changed or
    truncated, or has another format.
    """
    try:
        body = json.loads(content)
        checksum, written = body.pop("checksum"), body["format"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path} is not a record of r2med, or it was cut off: run it again") from None
    if written != file_format:
        again = command.replace("SYSTEM", repr(str(body.get("system", "SYSTEM"))))
        raise OtherFormatError(
            f"{path} is a record of format {written}, but this version reads format {file_format}: make it again with "
            f"{again}"
        )
    try:
        untouched = checksum == digest(body)  # a ValueError if the file contains NaN
        model = kind(**body)
    except (ValueError, TypeError, ValidationError):
        raise UserError(f"{path} is not a record of r2med, or it was cut off: run it again") from None
    if not untouched:
        raise UserError(f"{path} was altered after it was written: run it again")
    return model
