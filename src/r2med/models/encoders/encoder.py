"""The contract of encoders: texts in, vectors and their cost out, with every setting that the vectors depend on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.errors import UserError, check_installed
from r2med.foundation.engine.work import HERE, WorkNeeds
from r2med.models.encoders.ragged import Ragged

if TYPE_CHECKING:
    from r2med.data.dataset_cards import Instruction
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.runtime.setup import Setup
    from r2med.foundation.store import Store
    from r2med.models.encoders.model_cards import ModelCard

Role = Literal["query", "document", "generated"]
"""The role of a text. Prefix, length limit and encoder may depend on it. `generated` is text written by an LLM."""
ROLES: tuple[Role, ...] = get_args(Role)

Vectors = npt.NDArray[np.float32]


NO_PASSAGES = "passages: {model} has no tokenizer on this machine that can cut documents; leave passages out"


class Encoder(ABC):
    """A model that knows the instruction of a dataset. Its weights are loaded with the first text.

    A subclass has `key` and `encode`. The other members have defaults.
    """

    shards_in: str = "vectors"
    """The folder of the store for what it makes of documents."""
    shard_documents: ClassVar[int] = 512
    """Number of documents in a shard. A kill loses no more than the shard that is being encoded."""
    large_shard_documents: ClassVar[int] = 4096
    """The same for a corpus of at least 200,000 documents, so that there are not too many files."""
    cuts_passages: bool = False
    """True if it has `passages`."""

    @abstractmethod
    def key(self, role: Role) -> dict[str, Any]:
        """Return everything that the vectors of a role depend on: model, revision, prefix, lengths, pooling, dtype, …

        So a change of the query prefix must not change the key of documents.
        """

    @abstractmethod
    def encode(self, texts: Sequence[str], role: Role) -> Ragged:
        """Return the rows of each text, in their order, and the cost. `Ragged.single` has one row for each text."""

    def passages(self, texts: Sequence[str], tokens: int) -> list[list[str]]:
        """Return the passages of each document, each with at most this many tokens for the model.

        Raises UserError if the model's tokenizer is not on this machine.
        """
        raise UserError(NO_PASSAGES.format(model=self.key("document").get("model", type(self).__qualname__)))

    @property
    def needs(self) -> WorkNeeds:
        """Where it can encode: here, unless it says otherwise. Paid APIs count money, so they stay here."""
        return HERE

    @property
    def pinned(self) -> bool:
        """False if a push by the model's authors would change the weights of this name."""
        return True

    @property
    def in_folder(self) -> bool:
        """True if the documents' weights are in a folder, and their revision is a digest instead of a hub commit."""
        return False

    @property
    def libraries(self) -> tuple[str, ...]:
        """Packages that compute the vectors. Their versions are stored with the vectors."""
        return ()


LOADERS = {
    "transformers": "r2med.models.encoders.local_encoder:LocalEncoder",
    "sentence-transformers": "r2med.models.encoders.local_encoder:LocalEncoder",
    "remote-code": "r2med.models.encoders.local_encoder:LocalEncoder",
    "multi-vector": "r2med.models.encoders.late_models:LateEncoder",
    "sparse": "r2med.models.encoders.late_models:LateEncoder",
    "custom": "r2med.models.encoders.custom:CustomEncoder",
}
"""Class for each loader of models that run in this process, as "module:Class". It is imported when it is used."""
API_ENCODER = "r2med.models.encoders.api_encoder:ApiEncoder"
"""Class for the loaders that are embedding APIs."""


def open_encoder(card: ModelCard, instruction: Instruction, runtime: Runtime, store: Store | None = None) -> Encoder:
    """Return the encoder of a card for a dataset's instruction. Nothing is loaded yet.

    Raises MissingExtraError if a package that the card's loader needs is not installed.
    """
    module, _, name = LOADERS.get(card.loader, API_ENCODER).partition(":")
    check_installed(f"model {card.name}", modules_of_loader(card.loader, runtime.setup))
    encoder: Encoder = getattr(import_module(module), name)(card, instruction, runtime, store)
    return encoder


def modules_of_loader(loader: str, setup: Setup) -> tuple[str, ...]:
    """Return the optional modules that a loader of embedding models or rerankers needs in this process.

    A user's object imports what it needs itself, an API needs none, and a cluster has its own packages.
    """
    if loader == "custom" or loader not in LOADERS or setup.engine != "threads":
        return ()
    sentence = () if loader in ("transformers", "remote-code") else ("sentence_transformers",)
    backend = ("openvino",) if setup.backend == "openvino" else ()
    return ("torch", "transformers", *sentence, *backend)


class NotFiniteError(UserError):
    """Error for a text whose embedding has NaN or infinite entries. The caller adds the name of the document."""

    def __init__(self, index: int, hint: str = "") -> None:
        self.index = index
        """Position of the text among the encoded texts."""
        self.hint = hint or "possibly a half-precision overflow; try dtype (--dtype float32)"
        super().__init__(f"the embedding of text {index + 1} has NaN or infinite entries ({self.hint})")


def check_finite(rows: Vectors, positions: Sequence[int] | None = None, hint: str = "") -> None:
    """Raise NotFiniteError for the first row with an entry that is not finite.

    `positions` gives the text that each row belongs to.
    """
    # The sum of a row is NaN or infinite if one of its entries is. Only then are the entries checked.
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(rows.sum(axis=1)))
    for row in map(int, suspects):
        if not np.isfinite(rows[row]).all():
            raise NotFiniteError(row if positions is None else positions[row], hint)


def normalised(rows: Vectors) -> Vectors:
    """Return rows of length 1. A row of zeros stays zero."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit_rows: Vectors = rows / np.maximum(norms, np.float32(1e-12))
    return unit_rows


Receiver = Callable[[int], None]
"""Function that gets the number of texts of each finished batch."""

_receiver: ContextVar[Receiver | None] = ContextVar("r2med_batches", default=None)


@contextmanager
def receiving(receiver: Receiver) -> Iterator[None]:
    """Tell `receiver` about every batch that an encoder finishes, long before `encode` returns, to show progress.

    An encoder may report nothing before it returns, for example a user's object.
    """
    token = _receiver.set(receiver)
    try:
        yield
    finally:
        _receiver.reset(token)


def batch_receiver() -> Receiver | None:
    """Return the receiver of finished batches. Call this in the thread that called `encode`."""
    return _receiver.get()
