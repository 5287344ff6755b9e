"""From what is typed to a card, and from a card to what scores: a name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""

from __future__ import annotations

import re
from pathlib import Path

from r2med.crossencoders.contracts import PairScorer
from r2med.crossencoders.reranker_cards import RERANKERS, RerankerCard
from r2med.data.dataset_cards import Instruction
from r2med.encoders import weights
from r2med.encoders.encoder import extras_installed
from r2med.encoders.model_cards import safe_name
from r2med.errors import UserError
from r2med.setup import Setup

PREFIXES = ("hf:", "path:", "py:")


def card_of(spec: str) -> RerankerCard:
    """Return the card of anything that a user may name as a reranker."""
    if not spec.startswith(PREFIXES):
        return RERANKERS.card(spec)
    kind, _, place = spec.partition(":")
    return {"hf": _from_hub, "path": _from_folder, "py": _from_python}[kind](place)


def open_scorer(card: RerankerCard, instruction: Instruction, options: Setup) -> PairScorer:
    """Return what scores by a card, for a dataset's instruction words; nothing is loaded yet but a user's module."""
    if card.loader == "custom":
        from r2med.crossencoders.custom import CustomScorer

        return CustomScorer(card)
    with extras_installed(f"reranker {card.name}"):
        from r2med.crossencoders.encoder import CrossEncoder

        return CrossEncoder(card, instruction, options)


def _from_hub(place: str) -> RerankerCard:
    repository, _, revision = place.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise UserError(f"hf:{place}: a model on the hub is written hf:ORG/NAME or hf:ORG/NAME@REVISION")
    name = safe_name(f"hf-{repository}")
    return RerankerCard(name=name, repository=repository, revision=revision, loader="classifier", max_tokens=0)


def _from_folder(place: str) -> RerankerCard:
    folder = Path(place).expanduser().absolute()
    if not folder.is_dir():
        raise UserError(f"path:{place}: there is no such folder")
    weights.checked_folder(folder, f"path:{place}")
    name = safe_name(f"path-{folder.name}")
    return RerankerCard(name=name, repository=str(folder), loader="classifier", max_tokens=0)


def _from_python(place: str) -> RerankerCard:
    module, _, name = place.partition(":")
    if not module or not name:
        raise UserError(f"py:{place}: a Python reranker is written py:MODULE:NAME")
    return RerankerCard(name=safe_name(f"py-{place}"), repository=place, loader="custom", max_tokens=0)
