"""Use any system of ours as a retriever in LangChain. See `r2med serve` for access through a server."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from r2med.data.dataset import Dataset
from r2med.data.loading import load
from r2med.systems.system import System
from r2med.systems.system.system import LiveSystem


class LangChainRetriever(BaseRetriever):
    """Returns the k best documents for a question. The question is not stored."""

    system: Any
    """A system, or its name."""
    data: Any
    """A dataset, or its name or path."""
    k: int = 10
    _live: LiveSystem = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Index the corpus and load the models. Raises UserError if the system cannot run."""
        super().model_post_init(context)
        system = self.system if isinstance(self.system, System) else System.parse(self.system)
        with system.runtime.network():
            dataset = self.data if isinstance(self.data, Dataset) else load(self.data, system.runtime.store)
        self._live = system.live(dataset)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        [(_, ranking)] = self._live.answer(query, self.k).run
        corpus = self._live.dataset.corpus
        texts = corpus.texts(corpus.rows([document for document, _ in ranking]))
        return [
            Document(text, id=document, metadata={"score": score})
            for text, (document, score) in zip(texts, ranking, strict=True)
        ]
