"""Dense, multi-vector and sparse retrievers: encode the corpus once, then search its vectors exactly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError, check_installed
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.engine.work import THREADS, Engine
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import Labels
from r2med.models.encoders.encoder import LOADERS, NO_PASSAGES, ROLES, Encoder, modules_of_loader, open_encoder
from r2med.models.encoders.model_cards import LATE_FOLDERS, LATE_LOADERS, MODELS, ModelCard, resolve_card
from r2med.models.encoders.model_estimates import MOST_TOKENS, model_needs
from r2med.models.encoders.ragged import Ragged
from r2med.models.encoders.weights import IN_FOLDER
from r2med.systems.retrieve.exact.cpu_products import SearchCache
from r2med.systems.retrieve.exact.exact_search import search_exact
from r2med.systems.retrieve.exact.text_vectors import Block, Hits
from r2med.systems.retrieve.late.term_index import TermIndex
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, SearchQuery
from r2med.systems.retrieve.vectors.embeddings import Embeddings, embed_corpus, embed_texts, vectors_key


class VectorSettings(Stage):
    """Settings of stages that search vectors."""

    dims: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="numbers of each vector that are used, the first ones (for Matryoshka models); 0: all",
    )
    passages: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="tokens of a passage: a long document has a vector for each passage, and its best passage counts; "
        "0: one vector for the document, which the model cuts at its limit",
    )


@dataclass(frozen=True)
class OpenedVectors:
    """A corpus that is ready to be searched."""

    encoder: Encoder
    embeddings: Embeddings
    blocks: Sequence[Block]
    """The vectors that are compared, or the first numbers of them."""
    terms: TermIndex | None = None
    """The index of a sparse model, whose weights of terms are no vectors to compare."""
    cache: SearchCache = field(default_factory=SearchCache)


class Dense(VectorSettings, kind="retrieve"):
    """Compare vectors of an embedding model: a card's name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description of the card's model."""
        card = MODELS.get(name)
        if card is None:
            return super().summary(name)
        return f"Embeddings of {card.repository or card.query.repository or card.package or card.name}."

    def card(self, runtime: Runtime) -> ModelCard:
        """Return the model's card. For a model without one, the card is made from its repository or folder."""
        return runtime.part((self.name, "card"), lambda: resolve_card(self.name))

    @property
    def vectors_label(self) -> str:
        """The name of the vectors of documents in the store."""
        return f"{self.name}(passages={self.passages})" if self.passages else self.name

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return how many documents would be encoded and how much would be downloaded."""
        card = MODELS.get(self.name)
        kept_in = LATE_FOLDERS.get(card.loader, "vectors") if card else "vectors"
        is_stored = (kept_in, self.vectors_label) in size.stored
        tokens = 0 if is_stored else size.documents * size.document_tokens
        model = model_needs(str(self), self.name, MODELS, resolve_card, tokens, runtime.setup)
        if is_stored:
            return [replace(model, stored=size.documents, fetch=0.0)]
        price = card.price_per_million_tokens if card else 0.0
        if not price:
            return [replace(model, encoded=size.documents)]
        bill = tokens * price / 1e6
        return [replace(model, encoded=size.documents, read=tokens, dollars=bill, most_dollars=MOST_TOKENS * bill)]

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules that load the model."""
        if self.name.startswith("hf:"):  # otherwise the hub would be asked for its card before
            check_installed(self.name, modules_of_loader("transformers", runtime.setup))
        return modules_of_loader(self.card(runtime).loader, runtime.setup)

    def encoder(self, dataset: Dataset, runtime: Runtime) -> Encoder:
        """Return the encoder for a dataset. Datasets with the same instruction share an encoder."""
        # An API's answers get the labels of the store. Other encoders store nothing themselves.
        card = self.card(runtime)
        labels = Labels() if card.loader in LOADERS else runtime.store.labels
        return runtime.part(
            (self, "encoder", dataset.instruction, labels),
            lambda: open_encoder(card, dataset.instruction, runtime, runtime.store),
        )

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. Raises UserError for one that the model does not have."""
        card, encoder = self.card(runtime), self.encoder(dataset, runtime)
        is_late = card.loader in LATE_LOADERS
        if is_late and self.changed:
            typed = ", ".join(f"{key}={value}" for key, value in self.changed)
            raise UserError(f"{self.name}: {typed} needs a model with one vector per text")
        if self.passages and not is_late and not encoder.cuts_passages:
            raise UserError(NO_PASSAGES.format(model=self.name))
        roles: dict[str, Any] = {role: vectors_key(encoder, role, self.passages) for role in ROLES}
        # The pin is not part of the key of a role. Vectors depend on the revision alone, so they stay valid
        # when it is pinned later.
        pinned = {} if encoder.pinned else {"pinned": False}
        weights = {"weights": IN_FOLDER} if encoder.in_folder else {}
        return {**self.settings(), "similarity": card.similarity, **roles, **pinned, **weights}

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k best documents of each query. Vectors in the store are not encoded again."""
        runtime = runtime.about(dataset.label, model=self.vectors_label)
        opened = runtime.index((self, dataset.corpus.fingerprint), partial(self._open, dataset, runtime))
        with self._turn(opened.encoder, runtime):
            asked = self._query_vectors(queries, opened, runtime)
        started = time.perf_counter()
        hits = self._nearest(asked, opened, k, dataset.corpus.id_ranks(), runtime)
        run = Run.ranked([query.query.id for query in queries], hits, dataset.corpus)
        # The cost of vectors from the store is the cost of making them, as if the queries had been encoded now.
        cost = asked.cost + Cost(seconds=time.perf_counter() - started)
        return Searched(run, cost, opened.embeddings.cost)

    def _open(self, dataset: Dataset, runtime: Runtime) -> OpenedVectors:
        """Return the corpus with its vectors, ready to be searched."""
        encoder = self.encoder(dataset, runtime)
        embeddings = embed_corpus(
            dataset.corpus,
            encoder,
            runtime.store,
            runtime.engine,
            reuse=dataset.card is None or dataset.card.hub is None,  # a dataset of the user may change
            passages=self.passages,
        )
        if self.card(runtime).loader == "sparse":
            return OpenedVectors(encoder, embeddings, (), TermIndex.of(embeddings.shards, runtime.store))
        if not self.dims:
            return OpenedVectors(encoder, embeddings, embeddings.parts)
        if self.dims > embeddings.dimension:
            raise UserError(f"{self}: its vectors have {embeddings.dimension} numbers, fewer than dims")
        parts = [
            (first, Ragged({"vectors": part.arrays["vectors"][:, : self.dims]}, part.offsets))
            for first, part in embeddings.parts
        ]
        return OpenedVectors(encoder, embeddings, parts)

    def _query_vectors(self, queries: Sequence[SearchQuery], opened: OpenedVectors, runtime: Runtime) -> Ragged:
        """Return what the model makes of each query, with its generated texts."""
        encoder, engine = opened.encoder, runtime.engine
        store = runtime.store if runtime.store.keeps_questions else None  # nothing about a question of a server is kept
        if self.card(runtime).loader in LATE_LOADERS:
            return embed_texts([_joined_text(query) for query in queries], "query", encoder, store, engine)
        asked = query_vectors(queries, encoder, store, engine)
        vectors, dimension = asked.arrays["vectors"], opened.embeddings.dimension
        if vectors.shape[1] != dimension:
            sizes = f"{vectors.shape[1]} for queries and {dimension} for documents"
            raise UserError(f"{self.name} returned vectors of different lengths: {sizes}")
        return Ragged.single(vectors[:, : self.dims], asked.cost) if self.dims else asked

    def _nearest(
        self, asked: Ragged, opened: OpenedVectors, k: int, ranks: npt.NDArray[np.int32], runtime: Runtime
    ) -> list[Hits]:
        """Return the k best documents of each query."""
        if opened.terms is not None:
            return opened.terms.search(asked, k, ranks)
        card, setup = self.card(runtime), runtime.setup
        is_single = card.loader not in LATE_LOADERS
        # Vectors must still be scaled to length 1, as always the first numbers of a vector.
        takes_cosine = is_single and card.similarity == "cosine" and (not card.normalise or bool(self.dims))
        return search_exact(
            asked,
            opened.blocks,
            k,
            ranks,
            cosine=takes_cosine,
            memory=setup.memory,
            device=setup.device,
            cache=opened.cache,
        )

    def _turn(self, encoder: Encoder, runtime: Runtime) -> AbstractContextManager[object]:
        """Return the lock of an encoder's model, because not every tokenizer is thread-safe.

        Variants of a model share one lock. Different models do not wait for each other.
        """
        return runtime.turn(("model", str(encoder.key("document").get("model", self.name))))


def query_vectors(
    queries: Sequence[SearchQuery], encoder: Encoder, store: Store | None, engine: Engine = THREADS
) -> Ragged:
    """Return one vector per query, including its generated text.

    As in the benchmark, this is the mean of the vectors of the query and of the generated text. Several generated texts
    are averaged first. Some queries instead join both to one string.
    """
    stored = embed_texts([_query_text(query) for query in queries], "query", encoder, store, engine)
    vectors, cost = np.array(stored.arrays["vectors"]), stored.cost
    averaged = [(i, q.generated) for i, q in enumerate(queries) if q.generated and q.dense_form in (MEAN, TEXTS_ALONE)]
    if averaged:
        flat = [text for _, generated in averaged for text in generated]
        written = embed_texts(flat, "generated", encoder, store, engine)
        cost += written.cost
        ends = np.cumsum([len(generated) for _, generated in averaged])
        for (index, generated), end in zip(averaged, ends, strict=True):
            mean = written.arrays["vectors"][end - len(generated) : end].mean(axis=0)
            vectors[index] = mean if queries[index].dense_form == TEXTS_ALONE else (vectors[index] + mean) / 2
    return Ragged.single(vectors, cost)


def _query_text(search: SearchQuery) -> str:
    if search.generated and search.dense_form not in (MEAN, TEXTS_ALONE):
        # Both fields are filled at once, because a query may contain the words {text}.
        return search.dense_form.format(query=search.query.text, text=" ".join(search.generated))
    return search.query.text


def _joined_text(search: SearchQuery) -> str:
    """Return the one text that stands for a query and what was generated for it: token vectors have no mean."""
    if search.dense_form == MEAN:
        return " ".join([search.query.text, *search.generated])
    if search.generated and search.dense_form == TEXTS_ALONE:
        return " ".join(search.generated)
    return _query_text(search)
