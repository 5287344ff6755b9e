"""Retrievers whose answers a test writes."""

from __future__ import annotations

from typing import Any, ClassVar

from r2med.data.dataset import Dataset
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage


class ScriptedRetriever(Stage, kind="retrieve"):
    """A retriever that finds what a test says, and remembers what it searched. A subclass has `search`."""

    name: str = "scripted"
    answers: str = ""
    """What it finds, as text: stages are values."""
    found: ClassVar[Any]
    searches: ClassVar[list[Any]]

    def __init__(self, name: str, found: object) -> None:
        super().__init__(name=name, answers=repr(found))
        object.__setattr__(self, "found", found)
        object.__setattr__(self, "searches", [])

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        return {"retriever": self.name, "found": self.answers}
