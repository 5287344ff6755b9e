"""Settings of stages that search the vectors of a model, and what all retrievers with such a model share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field

from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.store import Store
from r2med.foundation.store.dataset_labels import Labels
from r2med.models.encoders.encoder import LOADERS, Encoder, modules_of_loader, open_encoder
from r2med.models.encoders.model_cards import LATE_LOADERS, MODELS, LateLoader, ModelCard, resolve_card
from r2med.models.encoders.model_estimates import MOST_TOKENS, model_needs
from r2med.models.encoders.passage_encoder import PassageEncoder
from r2med.models.encoders.weights import IN_FOLDER
from r2med.systems.retrieve.stored_search import check_filled
from r2med.systems.retrieve.vectors.embeddings import Embeddings, embed_corpus, may_change


class VectorSearch(Stage):
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
        kept_in = STORED_IN[card.loader] if card and card.loader in LATE_LOADERS else "vectors"
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
        return modules_of_loader(self.card(runtime).loader, runtime.setup)

    def encoder(self, dataset: Dataset, runtime: Runtime) -> Encoder:
        """Return the encoder for a dataset. Datasets with the same instruction share an encoder."""
        # An API's answers get the labels of the store. Other encoders store nothing themselves.
        labels = Labels() if self.card(runtime).loader in LOADERS else runtime.store.labels
        return runtime.part(
            (self, "encoder", dataset.instruction, labels), lambda: self._open_encoder(dataset, runtime)
        )

    def _open_encoder(self, dataset: Dataset, runtime: Runtime) -> Encoder:
        encoder = open_encoder(self.card(runtime), dataset.instruction, runtime, runtime.store)
        return PassageEncoder(encoder, self.passages) if self.passages else encoder

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        encoder = self.encoder(dataset, runtime)
        roles = {role: encoder.key(role) for role in ("query", "document", "generated")}
        # The pin is not part of the key of a role. Vectors depend on the revision alone, so they stay valid
        # when it is pinned later.
        pinned = {} if encoder.pinned else {"pinned": False}
        weights = {"weights": IN_FOLDER} if encoder.in_folder else {}
        return {**self.settings(), "similarity": self.card(runtime).similarity, **roles, **pinned, **weights}

    def embedded(self, dataset: Dataset, runtime: Runtime) -> EmbeddedCorpus:
        """Return the corpus with its vectors. Vectors in the store are not encoded again."""
        check_filled(dataset.corpus)
        runtime = runtime.about(dataset.label, model=self.vectors_label)
        encoder = self.encoder(dataset, runtime)
        embeddings = embed_corpus(dataset.corpus, encoder, runtime.store, runtime.engine, reuse=may_change(dataset))
        return EmbeddedCorpus(dataset.corpus, encoder, embeddings, runtime)

    def turn(self, encoder: Encoder, runtime: Runtime) -> AbstractContextManager[object]:
        """Return the lock of an encoder's model, because not every tokenizer is thread-safe.

        Variants of a model share one lock. Different models do not wait for each other.
        """
        return runtime.turn(("model", str(encoder.key("document").get("model", self.name))))


STORED_IN: Mapping[LateLoader, str] = {"multi-vector": "token-vectors", "sparse": "term-weights"}
"""Loader -> the folder of the store for documents. That of all other loaders is `vectors`."""


@dataclass(frozen=True)
class EmbeddedCorpus:
    """A corpus with the vectors of its documents, the encoder that made them, and the runtime whose store has them."""

    corpus: Corpus
    encoder: Encoder
    embeddings: Embeddings
    runtime: Runtime

    @property
    def query_store(self) -> Store | None:
        """The store for the vectors of queries. None where nothing about a question is kept."""
        return self.runtime.store if self.runtime.store.keeps_questions else None
