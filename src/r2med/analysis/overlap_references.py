"""Overlap of known medical datasets, to compare with: a card for each, and a CSV file with a value for each query.

The CSV file has the form of `overlap-queries.csv`, which `r2med analyse overlap` writes. A card without such a file has
means that were published elsewhere.
"""

from __future__ import annotations

import csv
import datetime
import io
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.resources.abc import Traversable

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from r2med.analysis.overlap_values import COSINE, MEASURES
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.core import plugins
from r2med.foundation.core.cards import Catalogue
from r2med.foundation.core.errors import UserError

KIND = "overlap-references"


class PublishedMean(BaseModel):
    """A mean overlap that was published, with its interval if that is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float = Field(ge=-1, le=1)
    """The mean over queries."""
    low: float | None = Field(None, ge=-1, le=1)
    """The lower bound of its 95 % interval."""
    high: float | None = Field(None, ge=-1, le=1)
    """The upper bound of its 95 % interval."""

    @model_validator(mode="after")
    def _ordered(self) -> PublishedMean:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval needs low and high")
        if self.low is not None and self.high is not None and not self.low <= self.mean <= self.high:
            raise ValueError("the mean must be between low and high")
        return self


class OverlapReference(BaseModel):
    """A known dataset whose overlap is shown beside that of others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The name of the reference. The default is the name of the file."""
    title: str
    """The name of the dataset."""
    version: str
    """The exact data: version, split, number of queries and documents."""
    date: datetime.date
    """The day on which the numbers were computed or published."""
    source: str
    """Who computed the numbers, and with what; a citation if they were published."""
    model: str = ""
    """The embedding model of the cosines, as in `--model`. Other models are not compared with it."""
    queries: int | None = Field(None, ge=1)
    """The number of queries of published means."""
    means: Mapping[str, PublishedMean] = {}
    """Published means by measure. A reference with a CSV file has none."""

    @model_validator(mode="after")
    def _measured(self) -> OverlapReference:
        for measure in self.means:
            if measure not in MEASURES:
                raise ValueError(f"means: {measure!r} is not one of {', '.join(MEASURES)}")
        if COSINE in self.means and not self.model:
            raise ValueError("the cosine needs the field model")
        return self

    @cached_property
    def values(self) -> Mapping[str, Floats]:
        """Measure -> a value for each query; empty if only means are known. Raises UserError for a wrong file."""
        file = plugins.files(KIND, ".csv").get(self.name)
        if file is None and not self.means:
            raise UserError(f"the overlap reference {self.name} needs {self.name}.csv beside its card, or [means]")
        if file is not None and self.means:
            raise UserError(f"the overlap reference {self.name} has {file}: remove [means] from its card")
        return {} if file is None else read_values(file)

    @property
    def about(self) -> str:
        """A sentence about the data and the origin of its numbers."""
        origin = "As published" if self.means else "Computed"
        return f"{self.title}: {self.version}. {origin} on {self.date.isoformat()}: {self.source}."


REFERENCES = Catalogue(KIND, OverlapReference, "overlap reference")


def read_values(file: Traversable) -> dict[str, Floats]:
    """Return measure -> values of a CSV file. An empty cell is NaN. Raises UserError for a wrong file."""
    rows = list(_rows(file))
    if not rows:
        raise UserError(f"{file}: no queries in it: copy the overlap-queries.csv of r2med analyse overlap")
    measures = [measure for measure in MEASURES if any(row.get(measure) for _, row in rows)]
    if not measures:
        raise UserError(f"{file}: no values in the columns {', '.join(MEASURES)}")
    return {measure: np.array([_value(file, line, measure, row) for line, row in rows]) for measure in measures}


def _rows(file: Traversable) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        reader = csv.DictReader(io.StringIO(file.read_text(encoding="utf-8-sig"), newline=""), strict=True)
        for row in reader:
            yield reader.line_num, row
    except (csv.Error, ValueError) as error:
        raise UserError(f"{file}: not a CSV file in UTF-8 ({error})") from None


def _value(file: Traversable, line: int, measure: str, row: Mapping[str, str]) -> float:
    text = (row.get(measure) or "").strip()
    least = -1 if measure == COSINE else 0
    try:
        value = float(text) if text else np.nan
    except ValueError:
        raise UserError(f"{file}:{line}: {measure} is {text[:40]!r}, which is not a number") from None
    if text and not least - 1e-6 <= value <= 1 + 1e-6:
        raise UserError(f"{file}:{line}: {measure} is {text[:40]}; it must be between {least} and 1")
    return value
