"""PyTerrier, both ways and without Java: our datasets and systems there, its pipelines here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from r2med.data.dataset import Dataset, Query
from r2med.data.dataset_cards import cards, groups
from r2med.data.loading import load
from r2med.errors import UserError
from r2med.results.evaluation import DEPTH
from r2med.retrieve import Run, write_run
from r2med.system import System


class Provider(pt.datasets.DatasetProvider):  # type: ignore[misc]
    """Our datasets by name: pt.get_dataset("r2med:Biology")."""

    def get_dataset(self, name: str) -> PyTerrierDataset:
        """Return a dataset. Raises KeyError if there is none of this name, as PyTerrier wants it."""
        try:
            return PyTerrierDataset(load(name))
        except UserError as error:
            raise KeyError(str(error)) from None

    def list_dataset_names(self) -> list[str]:
        """Return the names."""
        return [*cards(), *groups()["demo"]]


class PyTerrierDataset(pt.datasets.Dataset):  # type: ignore[misc]
    """A dataset of ours as PyTerrier's frames."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def get_corpus_iter(self, verbose: bool = True) -> Iterator[dict[str, str]]:
        """Yield the documents."""
        return ({"docno": identifier, "text": text} for identifier, text in self.dataset.corpus)

    def get_topics(self, variant: str | None = None) -> pd.DataFrame:
        """Return the queries."""
        return pd.DataFrame([(query.id, query.text) for query in self.dataset.queries], columns=["qid", "query"])

    def get_qrels(self, variant: str | None = None) -> pd.DataFrame:
        """Return the judgements."""
        judged = [(query, d, grade) for query, grades in self.dataset.qrels.items() for d, grade in grades.items()]
        return pd.DataFrame(judged, columns=["qid", "docno", "label"])


class Retriever(pt.Transformer):  # type: ignore[misc]
    """Any system of ours as a transformer: a frame of qid and query becomes one of docno, score and rank."""

    def __init__(self, system: System | str, data: Dataset | str | Path, k: int = DEPTH) -> None:
        self.system = System.parse(system) if isinstance(system, str) else system
        self.dataset = data if isinstance(data, Dataset) else load(data)
        self.k = k

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search; ranks begin with 0, as PyTerrier's do."""
        queries = [Query(str(qid), text) for qid, text in zip(inp["qid"], inp["query"], strict=True)]
        asked = replace(self.dataset, queries=queries)
        run = self.system.run(asked, self.system.setup.store, self.k).run
        texts = {query.id: query.text for query in queries}
        rows = [
            (query, texts[query], document, score, rank)
            for query, ranking in run
            for rank, (document, score) in enumerate(ranking)
        ]
        return pd.DataFrame(rows, columns=["qid", "query", "docno", "score", "rank"])


class Reranker:
    """A pipeline that scores frames of query and text, for `rerank=` of `r2med.run`."""

    def __init__(self, pipeline: Any) -> None:
        self.pipeline = pipeline
        self.revision = str(pipeline)

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return a score for each pair of query and document."""
        numbers = {query: str(number) for number, query in enumerate(dict.fromkeys(query for query, _ in pairs))}
        rows = [(numbers[query], query, str(at), text, 0.0, 0) for at, (query, text) in enumerate(pairs)]
        frame = self.pipeline(pd.DataFrame(rows, columns=["qid", "query", "docno", "text", "score", "rank"]))
        scores = dict(zip(frame["docno"], frame["score"], strict=True))
        return [float(scores[docno]) if docno in scores else float("nan") for _, _, docno, *_ in rows]


def write_pipeline_run(pipeline: Any, data: Dataset | str | Path, path: Path) -> Run:
    """Write what a pipeline finds as a run; `run:PATH` is then a retriever of ours, for rerankers and for fusion."""
    dataset = data if isinstance(data, Dataset) else load(data)
    frame = pipeline(PyTerrierDataset(dataset).get_topics())
    rankings: dict[str, dict[str, float]] = {}
    for query, document, score in zip(frame["qid"], frame["docno"], frame["score"], strict=True):
        rankings.setdefault(str(query), {})[str(document)] = float(score)
    run = Run.of(rankings)
    write_run(run, path, tag="pyterrier")
    return run
