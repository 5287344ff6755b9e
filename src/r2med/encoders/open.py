"""From a card to an encoder: one table of loaders, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from r2med.data.dataset_cards import Instruction
from r2med.encoders.contracts import Encoder
from r2med.encoders.model_cards import ModelCard
from r2med.encoders.specs import card_of
from r2med.errors import MissingExtraError
from r2med.setup import Setup

if TYPE_CHECKING:
    from r2med.store import Store

__all__ = ["card_of", "open_encoder"]

LOADERS = {
    "transformers": "r2med.encoders.transformer:open_transformer",
    "sentence-transformers": "r2med.encoders.sentence:open_sentence",
    "remote-code": "r2med.encoders.remote_code:open_remote_code",
    "custom": "r2med.encoders.custom:open_custom",
    "openai": "r2med.encoders.api:open_api_encoder",
    "voyage": "r2med.encoders.api:open_api_encoder",
}

EXTRAS = {
    "torch": "dense",
    "transformers": "dense",
    "sentence_transformers": "dense",
    "openai": "api",
    "voyageai": "api",
    "tiktoken": "api",
}


def open_encoder(card: ModelCard, instruction: Instruction, options: Setup, store: Store | None = None) -> Encoder:
    """Return the encoder of a card, for a dataset's instruction words."""
    module, _, function = LOADERS[card.loader].partition(":")
    try:
        encoder: Encoder = getattr(import_module(module), function)(card, instruction, options, store)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        raise MissingExtraError(f"model {card.name}", extra) from None
    return encoder
