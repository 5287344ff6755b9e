"""The base of retrievers that tests script: what a bound stage has by default, and its own searcher."""

from __future__ import annotations

from typing import Any

from r2med.systems.retrieve.retriever import Searcher


class ScriptedRetriever(Searcher):
    """A retriever that is its own searcher. A subclass has `key`, `index` and `search`."""

    asks = is_replayed = varies = chooses_forms = False
    inner = ()
    name = "scripted"

    @property
    def code(self) -> type:
        return type(self)

    def check(self, datasets: Any) -> None:
        """Nothing can stop it."""
