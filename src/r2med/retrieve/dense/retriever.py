"""A dense model as a retriever: encode the corpus once, then search it exactly."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from r2med.data.corpus import Corpus
from r2med.data.dataset_cards import Instruction
from r2med.encoders.contracts import Encoder
from r2med.encoders.model_cards import ANY_DATASET, ModelCard
from r2med.encoders.open import open_encoder
from r2med.errors import UserError
from r2med.retrieve.contracts import SearchQuery
from r2med.retrieve.dense.embeddings import Embedded, Embeddings, embed_corpus, embed_texts
from r2med.retrieve.dense.exact import search_exact
from r2med.retrieve.run import Run
from r2med.setup import Setup
from r2med.store import Store

ONE_STRING = {"query2doc": "{query}[SEP]{text}"}
"""Methods whose text joins the query before encoding; for all others the two vectors are averaged."""


@dataclass(frozen=True)
class Dense:
    """An embedding model."""

    card: ModelCard
    options: Setup
    typed: str = ""
    """How the user named a model without a card: hf:ORG/NAME, path:DIR, py:MODULE:NAME."""

    @property
    def name(self) -> str:
        """The model's name as one types it."""
        return self.typed or self.card.spec

    def describe(self, instruction: Instruction | None) -> dict[str, Any]:
        """Return every setting a score depends on."""
        encoder = open_encoder(self.card, instruction or ANY_DATASET, self.options)
        roles = {role: encoder.describe(role) for role in ("query", "document", "generated")}
        return {"retriever": "dense", "model": self.name, "similarity": self.card.similarity, **roles}

    def index(self, corpus: Corpus, store: Store, instruction: Instruction | None) -> DenseSearcher:
        """Return a searcher; vectors that are in the store are not encoded again."""
        if not len(corpus):
            raise UserError("the corpus is empty: there is nothing to search")
        encoder = open_encoder(self.card, instruction or ANY_DATASET, self.options, store)
        return DenseSearcher(self, corpus, encoder, embed_corpus(corpus, encoder, store), store)


class DenseSearcher:
    """Searches one corpus."""

    def __init__(
        self, dense: Dense, corpus: Corpus, encoder: Encoder, embeddings: Embeddings, store: Store | None
    ) -> None:
        self.timings: Mapping[str, float] = {"encode": embeddings.seconds}
        self.prepared: Mapping[str, float] = embeddings.usage
        self._used: Counter[str] = Counter()
        self._dense, self._corpus, self._encoder = dense, corpus, encoder
        self._embeddings, self._store = embeddings, store

    def search(self, queries: Sequence[SearchQuery], k: int) -> Run:
        """Return the k nearest documents of each query, exactly."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        asked = query_vectors(queries, self._encoder, self._store)
        vectors = asked.vectors
        self._used.update(asked.usage)
        if vectors.shape[1] != self._embeddings.dimension:
            sizes = f"{vectors.shape[1]} for queries and {self._embeddings.dimension} for documents"
            raise UserError(f"{self._dense.name} gives vectors of different lengths: {sizes}")
        started = time.perf_counter()
        cosine = self._dense.card.similarity == "cosine" and not self._dense.card.normalise
        found = search_exact(
            vectors,
            self._embeddings.blocks(),
            k,
            self._corpus.id_ranks(),
            cosine=cosine,
            memory=self._dense.options.memory,
        )
        run = Run.ranked([query.query.id for query in queries], found, self._corpus)
        # As if the queries had been encoded just now: what is in the store took its time when it was made.
        search = time.perf_counter() - started + asked.seconds
        self.timings = {**self.timings, "encode_queries": asked.seconds, "search": search}
        return run

    def usage(self) -> dict[str, float]:
        """Return what the model used for queries: texts, tokens, cost."""
        return dict(self._used)

    def live(self) -> DenseSearcher:
        """Return one that keeps no vector of a query."""
        return DenseSearcher(self._dense, self._corpus, self._encoder, self._embeddings, None)


def query_vectors(queries: Sequence[SearchQuery], encoder: Encoder, store: Store | None) -> Embedded:
    """Return one vector per query, with what was generated for it.

    As the benchmark does it: the mean of the query's vector and the generated text's (of several texts, of
    their mean), or one vector of the joined string for Query2Doc.
    """
    texts = [_query_text(query) for query in queries]
    stored = embed_texts(texts, "query", encoder, store)
    vectors, seconds, usage = np.array(stored.vectors), stored.seconds, Counter(stored.usage)
    averaged = [(i, q.generated) for i, q in enumerate(queries) if q.generated and q.method not in ONE_STRING]
    if averaged:
        flat = [text for _, generated in averaged for text in generated]
        written = embed_texts(flat, "generated", encoder, store)
        seconds += written.seconds
        usage.update(written.usage)
        ends = np.cumsum([len(generated) for _, generated in averaged])
        for (place, generated), end in zip(averaged, ends, strict=True):
            mean = written.vectors[end - len(generated) : end].mean(axis=0)
            vectors[place] = mean if queries[place].method == "alone" else (vectors[place] + mean) / 2
    return Embedded(vectors, seconds, dict(usage))


def _query_text(search: SearchQuery) -> str:
    if search.generated and (form := ONE_STRING.get(search.method)):
        # Filled at once: a query may have the words {text} in it.
        return form.format(query=search.query.text, text=" ".join(search.generated))
    return search.query.text
