"""What a reranker would ask, before anything was found: stand-in candidates show how many calls of what length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from r2med.data.dataset import Dataset
from r2med.llm.contracts import ChatModel, ChatRequest, Failure, Generation, RawAnswer
from r2med.rerank.llm.reranker import LLMReranker
from r2med.retrieve.retriever import SearchQuery
from r2med.retrieve.run import Run
from r2med.store import Store


def would_ask(reranker: LLMReranker, dataset: Dataset, store: Store) -> list[ChatRequest]:
    """Return the requests of a reranking whose candidates are documents taken at even steps from the corpus."""
    size = min(reranker.depth, len(dataset.corpus))
    rows = np.linspace(0, len(dataset.corpus) - 1, size).astype(np.int32)
    scores = np.arange(size, 0, -1, dtype=np.float32)
    queries = [SearchQuery(query) for query in dataset.queries]
    run = Run.ranked([query.id for query in dataset.queries], [(rows, scores)] * len(queries), dataset.corpus)
    listener = _Listener(reranker.llm)
    replace(reranker, llm=listener).rerank(dataset, queries, run, store)
    return listener.asked


class _Listener:
    """A chat model that remembers what it is asked and never answers."""

    def __init__(self, llm: ChatModel) -> None:
        self.name, self._llm = llm.name, llm
        self.asked: list[ChatRequest] = []

    def describe(self) -> dict[str, Any]:
        return self._llm.describe()

    def usage(self) -> dict[str, float]:
        return {}

    def complete(self, requests: Sequence[ChatRequest]) -> list[Generation | Failure]:
        self.asked += requests
        return [Failure("budget", "nothing is asked in a dry run", attempts=0) for _ in requests]

    def answers(self, requests: Sequence[ChatRequest]) -> list[RawAnswer | Failure]:
        self.asked += requests
        return [Failure("budget", "nothing is asked in a dry run", attempts=0) for _ in requests]
