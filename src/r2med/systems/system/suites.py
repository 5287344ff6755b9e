"""Suites: TOML files that list systems and datasets, so that one command makes a whole table."""

from __future__ import annotations

import itertools
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.names import files_of, read_toml, validated
from r2med.foundation.core.spec import Calls, parse, printed_system, typed_path, variants


class Grid(BaseModel):
    """Every combination of expansion, retriever and chain of rerankers. An empty name leaves a stage out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    expand: tuple[str, ...] = ("",)
    """Expansions. An empty text means no expansion."""
    retrieve: tuple[str, ...]
    """Retrievers."""
    rerank: tuple[str, ...] = ("",)
    """Rerankers, or chains of them joined by arrows. An empty text means no reranker."""

    @property
    def systems(self) -> list[Calls]:
        """The systems of the grid. The last part varies fastest."""
        parts = (
            [parse(each) if each else () for spec in specs for each in variants(spec)]
            for specs in (self.expand, self.retrieve, self.rerank)
        )
        return [expansion + retriever + reranker for expansion, retriever, reranker in itertools.product(*parts)]


class Suite(BaseModel):
    """A list of systems and of datasets to evaluate them on. Flags of the command override its values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The name of the suite. The default is the name of the file."""
    summary: str = ""
    """What the suite is for, in one sentence."""
    data: tuple[str, ...] = ("R2MED",)
    """Datasets, groups or folders, as for `--data`."""
    recorded: bool = False
    """True to use recorded generations, so that no expansion asks an LLM."""
    llm: str = ""
    """The LLM for parts that need one and do not name it."""
    systems: tuple[str, ...] = ()
    """Systems, as typed."""
    grid: tuple[Grid, ...] = ()
    """Combinations of stages."""

    @cached_property
    def calls(self) -> list[Calls]:
        """All systems without repeats, in the order of the file."""
        typed = [parse(each) for spec in self.systems for each in variants(spec)]
        return list(dict.fromkeys([*typed, *(calls for grid in self.grid for calls in grid.systems)]))

    @property
    def specs(self) -> list[str]:
        """All systems, as one types them."""
        return [printed_system(calls) for calls in self.calls]


def suites() -> dict[str, Traversable]:
    """Return name -> file for the suites of r2med and of plugins."""
    return dict(sorted(files_of("suites").items()))


def suite(name: str) -> Suite:
    """Return the suite with this name, or read it from a file."""
    path = typed_path(name)
    file: Traversable | Path
    if name in suites():
        file = suites()[name]
    elif path.is_file():
        file = path
    else:
        raise unknown("suite", name, suites(), f"{', '.join(suites())}, or a file NAME.toml")
    read = validated(Suite, {"name": name if name in suites() else path.stem, **read_toml(file, "suite")}, file)
    if not read.calls:
        raise UserError(f"{file}: it names no systems: systems = ['bm25'], or a [[grid]] with retrieve = [...]")
    return read
