"""Use our datasets and systems in PyTerrier, without Java."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyterrier as pt

from r2med.data.dataset import Dataset, Query
from r2med.data.dataset_cards import cards, groups
from r2med.data.loading import load_dataset, loaded
from r2med.evaluation.running.evaluation import DEPTH
from r2med.foundation.core.errors import UserError
from r2med.systems.system import System


class Provider(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """Our datasets by name: pt.get_dataset("r2med:Biology")."""

    def get_dataset(self, name: str) -> PyTerrierDataset:
        """Return a dataset. Raises KeyError, as PyTerrier expects, if no dataset has this name."""
        try:
            return PyTerrierDataset(load_dataset(name))
        except UserError as error:
            raise KeyError(str(error)) from None

    def list_dataset_names(self) -> list[str]:
        """Return the names of all datasets."""
        return [*cards(), *groups()["demo"]]


class PyTerrierDataset(pt.datasets.Dataset):  # type: ignore[misc]
    """One of our datasets as data frames for PyTerrier."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"PyTerrierDataset({self.dataset.name!r})"

    def get_corpus_iter(self, verbose: bool = True) -> Iterator[dict[str, str]]:
        """Yield the documents as docno and text."""
        return ({"docno": identifier, "text": text} for identifier, text in self.dataset.corpus)

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        """Return the queries as a frame of qid and query."""
        return pd.DataFrame([(query.id, query.text) for query in self.dataset.queries], columns=["qid", "query"])

    def get_qrels(self, variant: str | None = None) -> pd.DataFrame:
        """Return the relevance judgements as a frame of qid, docno and label."""
        judged = [(query, d, grade) for query, grades in self.dataset.qrels.items() for d, grade in grades.items()]
        return pd.DataFrame(judged, columns=["qid", "docno", "label"])


class PyTerrierRetriever(pt.Transformer):  # type: ignore[misc]
    """Any system of ours as a transformer: a frame of qid and query becomes one of docno, score and rank."""

    def __init__(self, system: System | str, data: Dataset | str | Path, k: int = DEPTH) -> None:
        self.system = System.parse(system) if isinstance(system, str) else system
        with self.system.runtime.network():
            self.dataset = loaded(data, self.system.runtime.store)
        self.k = k

    def __repr__(self) -> str:
        return f"PyTerrierRetriever({str(self.system)!r}, {self.dataset.name!r}, k={self.k})"

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search for the queries of a frame. Ranks start at 0, like PyTerrier's, and other columns are kept."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        own = {(query.id, query.text): query for query in self.dataset.queries}
        asked = [(str(qid), text) for qid, text in zip(inp["qid"], inp["query"], strict=True)]
        queries = [own.get(query) or Query(*query) for query in asked]
        found: list[tuple[str, str, float, int]] = []
        if queries:  # a pipeline is inspected with a frame that has no rows
            outcome = self.system.run(replace(self.dataset, queries=queries), self.k)
            for query, ranking in outcome.run:
                found += [(query, document, score, rank) for rank, (document, score) in enumerate(ranking)]
        frame = pd.DataFrame(found, columns=["qid", "docno", "score", "rank"])
        of_queries: list[str] = pt.model.query_columns(inp)
        return inp[of_queries].merge(frame, on="qid")
