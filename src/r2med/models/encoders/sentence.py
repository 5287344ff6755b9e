"""Loader `sentence-transformers`: the library's own modules, with batches by token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices, model_loading
from r2med.models.encoders.encoder import Role, Vectors, batch_receiver, normalised
from r2med.models.encoders.local_encoder import LocalModel
from r2med.models.encoders.model_cards import ModelCard, Side
from r2med.models.encoders.ragged import Ragged
from r2med.models.encoders.replicas import Replicas, Rows
from r2med.models.encoders.tokenize import TextTokenizer, Tokens, padded
from r2med.models.encoders.weights import Weights

if TYPE_CHECKING:
    from r2med.models.encoders.transformer import Forward

PLAIN_MODULES = {"Transformer", "Pooling", "Dense", "Normalize", "LayerNorm", "Dropout"}
"""Modules that take token ids and a mask and treat every text alike."""

KNOWN_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "modality"}

TEXTS_PER_PIECE = 512
"""Number of texts given to the library's own loop at once."""

SAMPLE_TEXT = "A text, as any other: naïve 12-lead ECG."


@dataclass(frozen=True)
class SentenceReplica:
    """A model on one device, and its transformer on another engine if the user chose one."""

    model: Any
    engine: Forward | None


def _engine(model: Any, backend: str, name: str) -> Forward | None:
    """Return a model's transformer on an engine other than torch.

    Raises UserError if the model has no plain transformer.
    """
    if backend == "torch":
        return None
    from r2med.models.encoders.openvino_engine import compiled
    from r2med.models.encoders.transformer import Forward

    if not _is_plain(model) or type(model[0]).__name__ != "Transformer":
        raise UserError(
            f"backend (--backend {quote(backend)}): model {name} has its own modules, which run only on torch"
        )
    on_engine: Forward = compiled(Forward(model[0].auto_model, "cpu", bidirectional=False), backend)
    return on_engine


def _is_plain(model: Any) -> bool:
    return all(
        type(module).__name__ in PLAIN_MODULES and type(module).__module__.startswith("sentence_transformers.")
        for module in model
    )


class SentenceModel(LocalModel):
    """The replicas of a model. It has a tokenizer only if the modules need nothing but token ids."""

    def __init__(self, weights: Weights, card: ModelCard, setup: Setup) -> None:
        from sentence_transformers import SentenceTransformer

        folder = weights.fetch()

        def load(device: str, dtype: str) -> SentenceReplica:
            model = SentenceTransformer(
                str(folder),
                device=device,
                trust_remote_code=setup.trust_remote_code,
                local_files_only=True,
                model_kwargs=devices.dtype_setting(dtype),
            ).eval()
            if not card.pool_prompt:
                model.set_pooling_include_prompt(False)
            return SentenceReplica(model, _engine(model, setup.backend, card.name))

        def shares(first: SentenceReplica) -> bool:
            self.limit = int(first.model.max_seq_length or 512)
            self.tokenizer = _plain_tokenizer(first.model, self.limit)
            return self.tokenizer is not None  # otherwise the library's own loop encodes, on one device

        model_loading.check_trust(folder, card.name, setup)
        with model_loading.loading(card.name, folder):
            self.replicas = Replicas(setup, load, shares=shares)
        model = self.replicas.first.model
        old = "get_sentence_embedding_dimension"
        self.width = int((getattr(model, "get_embedding_dimension", None) or getattr(model, old))() or card.dimension)

    def rows(
        self, texts: Sequence[str], tokens: Tokens, card: ModelCard, role: Role, prefix: str
    ) -> Rows[SentenceReplica]:
        """Return the function that encodes a batch with the modules of a copy."""
        assert self.tokenizer is not None
        skip, pad = self.tokenizer.prefix_length(prefix), self.tokenizer.pad

        def rows(replica: SentenceReplica, batch: Sequence[int]) -> Vectors:
            vectors = _forward(replica, [tokens.ids[i] for i in batch], pad, skip)
            return normalised(vectors) if card.normalise else vectors

        return rows

    def encode(self, texts: Sequence[str], card: ModelCard, role: Role, prefix: str) -> Ragged:
        """Return one row per text from the library's own loop, for modules that need more than token ids."""
        model = self.replicas.first.model
        model.max_seq_length = card.side(role).max_tokens or self.limit  # otherwise that of the last role
        method = getattr(model, "encode_document" if role == "document" else "encode_query", model.encode)
        receiver = batch_receiver()
        pieces: list[Vectors] = []
        for start in range(0, len(texts), TEXTS_PER_PIECE):
            piece = list(texts[start : start + TEXTS_PER_PIECE])
            rows = method(piece, prompt=prefix, batch_size=32, convert_to_numpy=True, show_progress_bar=False)
            vectors = np.asarray(rows, dtype=np.float32)
            pieces.append(normalised(vectors) if card.normalise else vectors)
            if receiver is not None:
                receiver(len(piece))
        # A model with its own modules does not report tokens.
        return Ragged.single(np.concatenate(pieces), Cost(texts=len(texts)))


def _plain_tokenizer(model: Any, limit: int) -> TextTokenizer | None:
    """Return the tokenizer of a model if its ids are all that the library would give to the modules."""
    if not _is_plain(model) or getattr(model.tokenizer, "backend_tokenizer", None) is None:
        return None
    # Test for lower-casing, chat templates and additions of later releases.
    tokenizer = TextTokenizer(model.tokenizer)
    ids = tokenizer([SAMPLE_TEXT], Side(), "", limit).ids[0]
    # The method has different names in different releases of the library.
    theirs = (model.preprocess if hasattr(model, "preprocess") else model.tokenize)([SAMPLE_TEXT])
    same = theirs["input_ids"][0].tolist() == ids.tolist() and set(theirs) <= KNOWN_INPUTS
    return tokenizer if same else None


def _forward(replica: SentenceReplica, ids: list[Any], pad: int, skip: int) -> Vectors:
    import torch

    model = replica.model
    device = model.device
    inputs = padded(ids, pad)
    matrix = torch.from_numpy(inputs).to(device)
    lengths = torch.tensor([len(row) for row in ids], device=device)
    mask = (torch.arange(matrix.shape[1], device=device) < lengths[:, None]).long()
    features: dict[str, Any] = {"input_ids": matrix, "attention_mask": mask}
    if skip:  # For pooling without the prompt. If nothing else is left, the result is a vector of zeros.
        features["prompt_length"] = skip
    modules = list(model)
    with torch.inference_mode():
        if replica.engine is not None:
            given = replica.engine.inputs(inputs, lengths.numpy())
            features["token_embeddings"] = replica.engine.model(**given).last_hidden_state
            modules = modules[1:]
        for module in modules:
            features = module(features)
        vectors: Vectors = features["sentence_embedding"].float().cpu().numpy()
        return vectors
