"""The loaders `multi-vector` and `sparse`: late interaction and learned sparse models of sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import MissingExtraError, UserError, check_installed
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices, model_loading
from r2med.models.encoders.encoder import Role, batch_receiver
from r2med.models.encoders.local_encoder import LocalEncoder, LocalModel
from r2med.models.encoders.model_cards import LATE_FOLDERS, ModelCard
from r2med.models.encoders.ragged import Ragged, joined
from r2med.models.encoders.weights import Weights

TEXTS_AT_ONCE = 256
"""Texts that the library is given at once; it sorts them by length."""
BATCH = 32
"""Texts of a batch at first; half of them after a batch did not fit."""

RELEASES = {"multi-vector": 6, "sparse": 5}
"""The first release of sentence-transformers that has the class of a loader."""

Rows = dict[str, npt.NDArray[Any]]


class _LateModel(LocalModel):
    """A model of sentence-transformers that is run by the library's own loop, on one device."""

    library_class: ClassVar[str]

    def __init__(self, weights: Weights, card: ModelCard, setup: Setup) -> None:
        import sentence_transformers

        folder = weights.fetch()

        def load(device: str, dtype: str) -> Any:
            return getattr(sentence_transformers, self.library_class)(
                str(folder),
                device=device,
                trust_remote_code=setup.trust_remote_code,
                local_files_only=True,
                model_kwargs=devices.dtype_setting(dtype),
            ).eval()

        model_loading.check_trust(folder, card.name, setup)
        with model_loading.loading(card.name, folder):
            names, dtype = devices.placement(setup)
            self._model = load(names[0], dtype)  # the library's loop uses one device
            self._limit_lengths(card)
        self._batch = BATCH

    def encode(self, texts: Sequence[str], card: ModelCard, role: Role, prefix: str) -> Ragged:
        """Return the rows of each text; batches that do not fit into memory are halved."""
        parts: list[Rows] = []
        receiver = batch_receiver()
        while len(parts) < len(texts):
            piece = list(texts[len(parts) : len(parts) + TEXTS_AT_ONCE])
            try:
                found = self._rows(piece, role, prefix)
            except Exception as error:
                if not devices.is_out_of_memory(error) or self._batch == 1:
                    raise
                self._batch //= 2
                devices.release()
                continue
            if receiver is not None:
                receiver(len(piece))
            parts += found
        return joined(parts, Cost(texts=len(texts)))

    def _limit_lengths(self, card: ModelCard) -> None:
        raise NotImplementedError

    def _rows(self, texts: list[str], role: Role, prefix: str) -> list[Rows]:
        raise NotImplementedError

    def _method(self, role: Role) -> Callable[..., Any]:
        method: Callable[..., Any] = self._model.encode_document if role == "document" else self._model.encode_query
        return method


class MultiVectorModel(_LateModel):
    """Gives a vector for each token that counts; markers and masks are those of the checkpoint."""

    library_class = "MultiVectorEncoder"

    def _limit_lengths(self, card: ModelCard) -> None:
        transformer = self._model[0]
        if card.document.max_tokens:
            transformer.document_length = card.document.max_tokens
        expansion = transformer.query_expansion
        if card.query.max_tokens and expansion is not None:
            most = card.query.max_tokens
            if most > expansion["length"]:
                # Short queries are filled up with masks to the length that the model was trained with, no further.
                transformer.query_length = most
                transformer.query_expansion = {**expansion, "strategy": "min"}
            else:
                transformer.query_expansion = {**expansion, "length": most}
        elif card.query.max_tokens:
            transformer.query_length = card.query.max_tokens

    def _rows(self, texts: list[str], role: Role, prefix: str) -> list[Rows]:
        settings = {"prompt": prefix} if prefix else {}
        found = self._method(role)(
            texts, batch_size=self._batch, convert_to_numpy=True, show_progress_bar=False, **settings
        )
        kind = np.float16 if role == "document" else np.float32
        return [{"vectors": _finite(np.asarray(rows, np.float32)).astype(kind)} for rows in found]


class SparseModel(_LateModel):
    """Gives a weight for each term of the vocabulary that a text has or implies."""

    library_class = "SparseEncoder"

    def _limit_lengths(self, card: ModelCard) -> None:
        if card.document.max_tokens:
            self._model.max_seq_length = card.document.max_tokens

    def _rows(self, texts: list[str], role: Role, prefix: str) -> list[Rows]:
        settings = {"prompt": prefix} if prefix else {}
        # Batch by batch: a row has as many numbers as the vocabulary has terms, nearly all of them zero.
        return [
            _terms(row)
            for at in range(0, len(texts), self._batch)
            for row in self._method(role)(
                texts[at : at + self._batch],
                batch_size=self._batch,
                convert_to_sparse_tensor=False,
                save_to_cpu=True,
                show_progress_bar=False,
                **settings,
            )
            .float()
            .numpy()
        ]


def _finite(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return rows, or one of zeros for a text without any: it then scores 0 with every query."""
    if not np.isfinite(rows).all():
        raise UserError("the vectors of a text have NaN or infinite entries; try dtype (--dtype float32)")
    return rows if len(rows) else np.zeros((1, rows.shape[1]), np.float32)


def _terms(row: npt.NDArray[np.float32]) -> Rows:
    if not np.isfinite(row).all():
        raise UserError("the term weights of a text have NaN or infinite entries; try dtype (--dtype float32)")
    terms = np.flatnonzero(row)
    return {"terms": terms.astype(np.int32), "weights": row[terms]}


class LateEncoder(LocalEncoder):
    """Encodes texts as a vector for each token (multi-vector) or as weights of terms (sparse)."""

    large_shard_documents: ClassVar[int] = 512  # with 300 tokens of 128 numbers they take 40 MB

    def __init__(self, card: ModelCard, instruction: Instruction, runtime: Runtime, store: object = None) -> None:
        check_installed(f"model {card.name}", ["sentence_transformers"])  # on a cluster this is the first to ask
        if int(version("sentence-transformers").partition(".")[0]) < RELEASES[card.loader]:
            raise MissingExtraError(f"model {card.name} ({card.loader})", "models")
        super().__init__(card, instruction, runtime)
        self.shards_in = LATE_FOLDERS[card.loader]
