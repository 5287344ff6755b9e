"""Read files of JSON lines that r2med writes: overlays and folds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from r2med.foundation.core.errors import UserError, explained
from r2med.foundation.store.files import refuse_device

AnyModel = TypeVar("AnyModel", bound=BaseModel)


def model_lines(file: Path, model: type[AnyModel], what: str, hint: str) -> Iterator[tuple[int, AnyModel]]:
    """Yield the number and the value of each line of a file that r2med writes, such as an overlay.

    Raises UserError if the file cannot be read, with the hint, or if a line is not of this model.
    """
    refuse_device(file)
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{file}: this {what} cannot be read ({error.strerror}): {hint}") from None
    for number, line in enumerate(lines, 1):
        try:
            yield number, model.model_validate_json(line)
        except ValidationError as error:
            raise UserError(f"{file}:{number}: not a line of this {what}: {explained(error)}") from None
