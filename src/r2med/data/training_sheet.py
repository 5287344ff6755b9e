"""The datasheet of a training set: where its rows come from, who labelled them, and what they share with test sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from r2med.foundation.core.errors import UserError, explained
from r2med.foundation.store.files import refuse_device, write_json

SHEET_NAME = "training.json"
"""Name of the datasheet in the folder of a training set, and in that of a model that was trained with it."""
FORMAT: Literal[1] = 1


class SheetPart(BaseModel):
    """A part of a datasheet. Nothing can be changed or added."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TrainingOverlap(SheetPart):
    """What training data share with one test set, or with the part of it that a fold holds out."""

    dataset: str
    """The name of the test set."""
    fingerprint: str
    """The fingerprint of the test set."""
    corpus_fingerprint: str = ""
    """The fingerprint of its corpus, which further labels do not change."""
    fold: int = 0
    """The fold whose queries were compared. 0: all queries."""
    queries: int = Field(ge=1)
    """Number of queries that were compared."""
    touched: int = Field(0, ge=0)
    """Number of these queries whose question, answer or relevant document is in the training data."""
    questions: int = Field(0, ge=0)
    """Number of questions that the training data hold."""
    passages: int = Field(0, ge=0)
    """Number of relevant documents that the training data hold."""
    answers: int = Field(0, ge=0)
    """Number of answers of five words or more that the training data hold."""

    @model_validator(mode="after")
    def _touches_what_was_compared(self) -> TrainingOverlap:
        if self.touched > self.queries:
            raise ValueError(f"{self.touched} touched queries are more than the {self.queries} that were compared")
        if self.touched < (least := max(self.questions, self.answers, min(1, self.passages))):
            raise ValueError(
                f"{self.touched} touched queries are too few for the texts that it counts: at least {least}"
            )
        return self

    @property
    def words(self) -> str:
        """How many queries are touched, in a few words."""
        if not self.touched:
            return "no overlap found"
        share = self.touched / self.queries
        return f"overlap {'under 1' if share < 0.01 else format(100 * share, '.0f')} %"


class TrainingFile(SheetPart):
    """A file of training rows."""

    sha256: str
    """The SHA-256 of its bytes."""
    rows: int
    """Number of its lines."""


class SheetOverlay(SheetPart):
    """An overlay whose labels are among the rows."""

    name: str
    """The name of its file."""
    digest: str
    """A digest of its labels."""


class TrainingSheet(SheetPart):
    """The datasheet of a training set, or of the part of it that one fold trains with."""

    format: Literal[1] = FORMAT
    """The number of this format."""
    r2med: str
    """The version that wrote the training set."""
    created: str
    """Date and time in UTC."""
    dataset: str
    """The name of the dataset that the rows come from."""
    fingerprint: str
    """The fingerprint of that dataset."""
    licence: str = ""
    """The licence of its texts, if its card states one."""
    source: str = ""
    """REPOSITORY@REVISION of a dataset of the hub; empty for a user's folder."""
    overlays: tuple[SheetOverlay, ...] = ()
    """The overlays whose labels are among the rows."""
    fold: int = 0
    """The fold that was left out of the rows. 0: none."""
    held_out: str = ""
    """A digest of the queries of that fold, with their texts. Empty without folds."""
    folds: int = 0
    """Number of folds. 0: the set was not split."""
    queries: int
    """Number of queries with rows."""
    positives: int = Field(ge=0)
    """Number of pairs of a query and a relevant document."""
    negatives: int = Field(ge=0)
    """Number of pairs of a query and a document that was judged to be clearly irrelevant."""
    reasoned: int = 0
    """Number of queries with a reasoning text."""
    labelled_by: Mapping[str, int] = {}
    """The dataset, a judge (LLM) or people -> number of pairs that they labelled."""
    models: Mapping[str, tuple[str, ...]] = {}
    """Step of the dataset's making -> the models that it asked, where the dataset says it."""
    left_out: Mapping[str, int] = {}
    """Reason -> number of judged documents that are no rows."""
    groups: int = 0
    """Number of groups of queries that share nothing."""
    largest_group: int = 0
    """Number of queries in the largest group."""
    linked: Mapping[str, int] = {}
    """Reason -> number of queries that share this with another query."""
    allowed_test_set: str = ""
    """The known test set that the user allowed to be trained with. Empty otherwise."""
    files: Mapping[str, TrainingFile] = {}
    """Name of a file of rows -> its digest and size."""
    overlaps: tuple[TrainingOverlap, ...] = ()
    """What the rows share with each known test set at hand, and with the queries of the fold that was left out."""
    not_compared: tuple[str, ...] = ()
    """Known test sets that are not on this machine, so that they were not compared."""

    def write(self, path: Path | str) -> None:
        """Write the datasheet, completely or not at all."""
        write_json(Path(path), self.model_dump(mode="json"))

    @classmethod
    def read(cls, path: Path | str) -> TrainingSheet:
        """Read a datasheet. Raises UserError if it is not one."""
        refuse_device(Path(path))
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise UserError(f"{path}: the datasheet cannot be read ({error.strerror})") from None
        except ValidationError as error:
            why = explained(error)
            raise UserError(f"{path}: not a datasheet of r2med data training: {why}") from None


class Lineage(SheetPart):
    """What a model was trained with, as its card states it."""

    name: str
    """The name of the training data."""
    digest: str = ""
    """The SHA-256 of the file of rows."""
    datasheet: str = ""
    """Where the datasheet is."""
    fold: int = 0
    """The fold that was left out of the rows. 0: none."""
    overlaps: tuple[TrainingOverlap, ...] = ()
    """What the rows share with test sets."""

    @classmethod
    def of(cls, sheet: TrainingSheet, datasheet: str) -> Lineage:
        """Return what a datasheet says."""
        digest = next((file.sha256 for file in sheet.files.values()), "")
        return cls(name=sheet.dataset, digest=digest, datasheet=datasheet, fold=sheet.fold, overlaps=sheet.overlaps)


def lineage_of(folder: Path) -> Lineage | None:
    """Return what the model in a folder was trained with; None without a datasheet beside its weights."""
    file = folder / SHEET_NAME
    return Lineage.of(TrainingSheet.read(file), SHEET_NAME) if file.is_file() else None
