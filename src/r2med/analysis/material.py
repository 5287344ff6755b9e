"""The material of analyses: datasets and records. Each is opened on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from r2med.data import Dataset
from r2med.data.dataset_word import GivenData, data_words, given_data
from r2med.data.loading import loaded
from r2med.evaluation.comparison.largest_group import largest_group, names_systems
from r2med.evaluation.comparison.standings import MEASURE
from r2med.evaluation.measure.significance import Values
from r2med.evaluation.records.collection import MAX_FAILURES, collect, given_records
from r2med.evaluation.records.local_datasets import local_datasets, typed_places
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.runtime.runtime import Runtime


@dataclass(frozen=True)
class Material:
    """Datasets, records and settings that all analyses of one report share."""

    runtime: Runtime
    data: Sequence[GivenData] = ()
    """Datasets by name or folder. Without any, those of the records or the demo are used."""
    systems: Sequence[str | Path] = ()
    """Names of systems, record files or folders. Without any, all of `results` are used."""
    results: Path = Path("results")
    max_failures: float = MAX_FAILURES
    measure: str = MEASURE
    model: str = ""
    """Embedding model for cosine similarities."""
    synonyms: Path | None = None
    """A table of synonyms. The analysis difficulty compares concepts by it."""
    queries: int = 0
    """Number of documents and of questions of each dataset that an LLM is asked about. 0 means the default sample."""

    @classmethod
    def given(cls, runtime: Runtime, **fields: Any) -> Material:
        """Return the material of the keywords of `analyse`: one value or several, names, paths and objects."""
        known = [each.name for each in dataclass_fields(cls)][1:]
        for name in fields:
            if name not in known:
                raise unknown("setting of an analysis", name, known)
        forms: dict[str, Callable[[Any], Any]] = {
            **{"data": given_data, "systems": given_records},
            **{name: Path for name in ("results", "synonyms") if fields.get(name) is not None},
        }
        return cls(runtime, **{name: forms[name](value) if name in forms else value for name, value in fields.items()})

    @property
    def scope(self) -> str:
        """Description of the datasets and records."""
        records = [str(source) for source in self.systems] or [f"records of {self.results}"]
        return ", ".join([*data_words(self.data), *records])

    @cached_property
    def collection(self) -> RecordCollection:
        """The records on the named datasets."""
        read = collect(self.systems, self.results, self.max_failures)
        if not self.data:
            return read
        wanted = self.data_names
        cells = {key: kept for key, kept in read.cells.items() if key[1] in wanted}
        if not cells:
            raise UserError(
                f"there are no records of {', '.join(data_words(self.data))}: make some with r2med run bm25 --data "
                "NAME",
            )
        return RecordCollection(cells)

    @property
    def data_names(self) -> set[str]:
        """Names that the named datasets have in records. A folder that is gone had the name of its path."""
        words = data_words(self.data)
        gone = {Path(word).name for word in words if not Path(word).is_dir()}
        return {*words, *gone, *typed_places(self.data, self.runtime.store)}

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The named datasets, or those of the records that are on this machine, or the demo datasets."""
        if self.data:
            return {dataset.name: dataset for dataset in (loaded(word, self.runtime.store) for word in self.data)}
        if self.results.is_dir() or self.systems:
            return self.recorded
        from r2med.data import names

        return {name: loaded(name, self.runtime.store) for name in names("demo")}

    @cached_property
    def recorded(self) -> Mapping[str, Dataset]:
        """Datasets of the records that are on this machine and have not changed since."""
        return local_datasets(self.collection, self.data, self.runtime.store)

    @cached_property
    def _shared(self) -> tuple[RecordCollection, list[str]]:
        if names_systems(self.systems):
            return self.collection, []
        return largest_group(self.collection, named=True)

    @property
    def shared(self) -> RecordCollection:
        """The records of the systems that are compared: the named ones, or else the largest group on the same data."""
        return self._shared[0]

    @property
    def left_out(self) -> list[str]:
        """A note for each system and dataset that is not compared."""
        if notices := self._shared[1]:
            return [f"{notice}." for notice in notices]
        lacking = [name for name in self.collection.datasets if name not in self.values]
        return [f"{name} is left out: not all systems were run on it." for name in lacking]

    @cached_property
    def values(self) -> Values:
        """Dataset -> points as systems of `shared` × queries, for the datasets that all of them were run on."""
        values = {name: 100 * rows for name, (_, rows) in self.shared.values(self.measure).items()}
        return {name: rows for name, rows in values.items() if not np.isnan(rows).any()}

    @cached_property
    def best(self) -> str | None:
        """The system with the best mean over datasets; None if the systems share no dataset."""
        if not self.values:
            return None
        return self.shared.systems[
            int(np.argmax(np.mean([rows.mean(axis=1) for rows in self.values.values()], axis=0)))
        ]
