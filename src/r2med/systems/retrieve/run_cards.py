"""Runs that others publish: where they lie in the publisher's repository, and how many lines they have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from r2med.data import Dataset
from r2med.data.runs.run_file import run_bytes
from r2med.foundation.core.cards import Catalogue
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.runtime.setup import Setup


class RunCard(BaseModel):
    """The runs of one system on several datasets, in a folder that the user has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The name of the runs, typed as run:NAME. By default the name of the file."""
    variant: str = ""
    """Not used."""
    repository: str
    """The repository on GitHub that holds the runs."""
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    """The commit at which the runs were looked at."""
    file: str
    """The path of a run inside the repository, with {dataset}."""
    system: str
    """The system that made the runs, by its name here."""
    depth: int = Field(ge=1)
    """Number of lines of each query."""
    datasets: tuple[str, ...]
    """The datasets that have a run."""

    def find(self, dataset: Dataset, setup: Setup) -> Path:
        """Return the run of a dataset in the folder that the user gave. Raises UserError if it is not there."""
        if dataset.name not in self.datasets:
            raise UserError(f"run:{self.name} has no run for {dataset.name}, only for {', '.join(self.datasets)}")
        folder = setup.path_of(self.name)
        if folder is None:
            raise UserError(
                f"run:{self.name} is in the repository {self.repository} on GitHub: clone it, and give the folder by ",
                Setting("Setup", model_paths={self.name: "DIR"}),
            )
        file = folder / self.file.format(dataset=dataset.name)
        if not file.is_file():
            raise UserError(f"{folder} is not a clone of {self.repository}: it has no {file.relative_to(folder)}")
        return file

    def check(self, file: Path, dataset: Dataset) -> None:
        """Raise UserError if a run does not have as many lines as were published for each query of the dataset."""
        with run_bytes(file) as lines:
            counts = Counter(line.split(None, 1)[0].decode() for line in lines if line.strip())
        for query in dataset.queries:
            if counts[query.id] != self.depth:
                found = f"{counts[query.id]:,} lines for query {query.id!r}"
                raise UserError(f"{file} has {found} instead of {self.depth:,}: is the clone complete?")


RUN_CARDS: Catalogue[RunCard] = Catalogue("runs", RunCard, "published run")
