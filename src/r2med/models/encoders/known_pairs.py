"""Catch a model that loads and gives wrong vectors: by the versions its card names, and by pairs that belong together.

Code that comes with a model is written for one release of transformers. With another it may load without an error and
give nearly random vectors, which no later step would notice.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, digest
from r2med.models.encoders.encoder import Encoder, normalised, receiving

if TYPE_CHECKING:
    from r2med.models.encoders.model_cards import ModelCard

KIND = "model-check"
"""The folder of the store with the checks that a model passed."""


def check_once(encoder: Encoder, card: ModelCard, store: Store) -> None:
    """Raise UserError if the model is known not to work with the installed versions, or fails its known pairs here.

    What it passed with these versions is in the store.
    """
    for package, needed in _needed(card).items():
        check_version(card, package, needed)
    if not card.known_pairs:
        return
    versions = {package: _installed(package) for package in ("torch", "transformers", "sentence-transformers")}
    roles = [encoder.key("query"), encoder.key("document")]

    def build(folder: Path) -> dict[str, Any]:
        check_pairs(encoder, card)
        return {"versions": versions}

    key = digest([KIND, roles, card.similarity, card.known_pairs, versions])
    store.about(model=card.spec).make(KIND, key, build)


def check_version(card: ModelCard, package: str, needed: str) -> None:
    """Raise UserError if an installed package has a version that the model is known not to work with."""
    from packaging.specifiers import SpecifierSet

    here = _installed(package)
    if here and not SpecifierSet(needed).contains(here, prereleases=True):
        raise UserError(
            f"model {card.name} works with {package}{needed}, and {package} {here} is installed: {_environment(card)}"
        )


def check_pairs(encoder: Encoder, card: ModelCard) -> None:
    """Raise UserError if a query of the card's pairs is not nearer to its own passage than to those of the others."""
    queries, passages = zip(*card.known_pairs, strict=True)
    with receiving(lambda texts: None):  # these texts are no part of what is being encoded
        left = encoder.encode(queries, "query").vectors
        right = encoder.encode(passages, "document").vectors
    if card.similarity == "cosine":
        left, right = normalised(left), normalised(right)
    scores = left @ right.T
    own = scores.diagonal().copy()
    scores[range(len(own)), range(len(own))] = -float("inf")
    wrong = int((~(own > scores.max(axis=1))).sum())  # NaN is not nearest
    if wrong:
        here = ", ".join(f"{package} {_installed(package)}" for package in ("transformers", "sentence-transformers"))
        raise UserError(
            f"model {card.name} gives wrong vectors with {here}: {wrong} of {len(own)} known queries are not "
            f"nearest to their own passage; {_remedy(card)}",
        )


def _remedy(card: ModelCard) -> str:
    needed = " and ".join(f"{package}{wanted}" for package, wanted in _needed(card).items())
    if not needed:
        return "its weights may be damaged: fetch them again, or use another folder with model_paths (--model-path)"
    return f"it works with {needed}: {_environment(card)}"


def _environment(card: ModelCard) -> str:
    """Return the command that makes an environment for the model."""
    folder = f"{card.name}-env"
    # Not the extra models: it needs the versions that other models work with.
    packages = {"torch": "", "transformers": "", "sentence-transformers": "", **_needed(card)}
    wanted = " ".join(f"'{package}{bound}'" if bound else package for package, bound in packages.items())
    install = f"{folder}/bin/pip install {wanted} -e . in the clone of r2med"
    return f"python -m venv {folder} && {install} makes an environment for it"


def _needed(card: ModelCard) -> dict[str, str]:
    bounds = {"transformers": card.transformers, "sentence-transformers": card.sentence_transformers}
    return {package: wanted for package, wanted in bounds.items() if wanted}


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
