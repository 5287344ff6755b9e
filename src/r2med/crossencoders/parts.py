"""Which weights a reranker's card means here: one model, or a base and the LoRA adapter that is merged into it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.encoders import weights
from r2med.encoders.weights import Weights
from r2med.setup import Setup


@dataclass(frozen=True)
class Parts:
    """A model, and the adapter that changes it, if it has one."""

    model: Weights
    adapter: Weights | None = None

    def describe(self) -> dict[str, str]:
        """Return what a score depends on: names and revisions."""
        own = self.adapter or self.model
        found = {"model": own.repository or own.name, "revision": own.revision}
        if self.adapter:
            found |= {"base": self.model.repository, "base_revision": self.model.revision}
        return found


def find_parts(card: RerankerCard, options: Setup) -> Parts:
    """Say which weights a card means, without downloading them.

    A base by hand is named NAME.base. A folder of NAME that holds a whole model, merged before, needs no base.
    """
    if not card.base:
        return Parts(weights.find(card, options))
    by_hand = options.path_of(card.name)
    if by_hand is not None and (by_hand / "config.json").is_file() and not (by_hand / "adapter_config.json").is_file():
        return Parts(weights.find(card, options))
    name = f"{card.name}.base"
    base = card.model_copy(update={"name": name, "repository": card.base, "revision": card.base_revision})
    return Parts(weights.find(base, options), _adapter(card, by_hand))


def _adapter(card: RerankerCard, by_hand: Path | None) -> Weights:
    if by_hand is not None:
        revision = weights.folder_revision(weights.checked_adapter(by_hand, card.name))
        return Weights(card.name, card.repository, revision, by_hand, "adapter")
    found = Weights(card.name, card.repository, card.revision, kind="adapter")
    return replace(found, revision=weights.commit_of(card.name, card.repository, card.revision))
