"""Verdicts: what `verify` found in each entry, in one file that the job of a board writes and reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import __version__
from r2med.foundation.store.files import refuse_device, sha256, write_json
from r2med.foundation.text.terminal_text import quoted

FORMAT = 1

NO_VERDICT = "r2med verify has not checked this entry"
"""Why a record without a verdict is not verified."""


class EntryVerdict(BaseModel):
    """What `verify` found in one entry. A fault is empty if everything matches that can be computed again."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    records: tuple[str, ...] = ()
    """The fault of each record, in the order of the entry."""
    answers: tuple[str, ...] = ()
    """The fault of each answer record, in the order of the entry."""


class Verdicts(BaseModel):
    """The verdicts of a check of several entries."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    """The number of this format."""
    r2med: str = __version__
    """The version of r2med that checked the entries."""
    entries: dict[str, EntryVerdict] = {}
    """SHA-256 of the bytes of an entry -> its verdict. An entry that was changed afterwards has none."""

    def write(self, path: Path, beside: Sequence[Path]) -> None:
        """Write the file. Raises UserError if it is inside one of the folders `beside`, which hold what others sent."""
        refuse_submitted(path, beside)
        write_json(path, self.model_dump(mode="json"))

    @classmethod
    def read(cls, path: Path, beside: Sequence[Path] = ()) -> Verdicts:
        """Read verdicts. Raises UserError if the file is inside one of the folders `beside`, or is not of `verify`."""
        refuse_submitted(path, beside)
        refuse_device(path)
        try:
            verdicts = cls(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            raise UserError(
                f"{path}: no such file: r2med verify ENTRIES --runs RUNS --verdicts {quoted(path)}"
            ) from None
        except (OSError, ValueError, TypeError, RecursionError, ValidationError):
            raise UserError(
                f"{path} does not contain verdicts: write it with r2med verify --verdicts {quoted(path)}"
            ) from None
        if verdicts.format != FORMAT:
            raise UserError(f"{path} has verdicts of format {verdicts.format}, but this version reads format {FORMAT}")
        return verdicts

    def faults(self, entry: Path, records: int, answers: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return why each record and each answer record of an entry is not verified; empty for those that are."""
        verdict = self.entries.get(sha256(entry))
        if verdict is None or (len(verdict.records), len(verdict.answers)) != (records, answers):
            return [NO_VERDICT] * records, [NO_VERDICT] * answers
        return verdict.records, verdict.answers


def refuse_submitted(path: Path, folders: Iterable[Path]) -> None:
    """Raise UserError if a file of verdicts is inside one of the folders, where a submitter could have put it."""
    for folder in folders:
        if folder.is_dir() and path.resolve().is_relative_to(folder.resolve()):
            raise UserError(f"{path} is inside {folder}, where others put files: keep verdicts outside of it")
