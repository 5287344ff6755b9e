"""Model cards: one TOML file each, with variants that change a few fields of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from r2med import plugins
from r2med.data.dataset_cards import ANY_DATASET as ANY_DATASET
from r2med.data.dataset_cards import Instruction
from r2med.errors import UserError, checked_name, nearest
from r2med.toml_card import read_toml, validated


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Side(_Part):
    """How texts of one role are encoded."""

    prefix: str = ""
    """May name {kind}, {what}, {domain}, {inst_query} and {inst_document} of the dataset's instruction."""
    max_tokens: int = 512
    repository: str = ""
    """The tower of this role, where it is not the model's one."""
    revision: str = ""
    pair_with_empty: bool = False
    """Encode the pair ("", text), as MedCPT's articles with an empty title."""
    input_type: str = ""
    """What an API is told the text is."""

    def prefix_for(self, instruction: Instruction) -> str:
        """Return the prefix with the dataset's words in it."""
        return instruction.fill(self.prefix)


class ModelCard(_Part):
    """All that is needed to encode with a model as its authors meant."""

    name: str
    variant: str = ""
    repository: str = ""
    revision: str = ""
    package: str = ""
    """An installed Python package that carries the weights in its folder `model`."""
    loader: Literal["transformers", "sentence-transformers", "remote-code", "openai", "voyage", "custom"]
    architecture: str = ""
    pooling: Literal["", "cls", "mean", "last"] = ""
    pool_prompt: bool = True
    """Whether the prefix's tokens take part in mean pooling."""
    bidirectional: bool = False
    """Whether a decoder is to attend in both directions."""
    append_eos: bool = False
    """Make sure that a text ends in the end-of-sequence token, within the limit."""
    normalise: bool = False
    similarity: Literal["dot", "cosine"] = "cosine"
    dimension: int = 0
    parameters: str = ""
    licence: str = ""
    price_per_million_tokens: float = 0.0
    notes: tuple[str, ...] = ()
    query: Side = Side()
    document: Side = Side()
    generated: Literal["query", "document", "bare"] = "bare"
    """Which side's treatment generated text gets; bare: the query's limit and tower without a prefix."""

    @property
    def spec(self) -> str:
        """The name as one types it."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    def side(self, role: str) -> Side:
        """Return how texts of a role are encoded."""
        if role == "generated":
            if self.generated == "bare":
                return self.query.model_copy(update={"prefix": ""})
            role = self.generated
        return self.document if role == "document" else self.query


def read_card(file: Traversable | Path, name: str) -> dict[str, ModelCard]:
    """Return a card and its variants, by spec."""
    content = read_toml(file)
    variants: dict[str, Any] = content.pop("variants", {})
    found = [validated(ModelCard, {"name": name, **content}, file)]
    for variant, changes in variants.items():
        found.append(validated(ModelCard, {"name": name, "variant": variant, **_merged(content, changes)}, file))
    return {card.spec: card for card in found}


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for field, value in changes.items():
        out[field] = _merged(base.get(field, {}), value) if isinstance(value, dict) else value
    return out


@cache
def models() -> Mapping[str, ModelCard]:
    """Return every card by spec, variants included."""
    found: dict[str, ModelCard] = {}
    for name, file in sorted(plugins.files("models", ".toml").items()):
        found |= read_card(file, checked_name(name, "model"))
    return found


def model_card(spec: str) -> ModelCard:
    """Return the card of a spec; a name that does not exist is one line with the nearest."""
    if spec in models():
        return models()[spec]
    raise UserError(f"no model {spec!r}{nearest(spec, models())}: r2med models list shows all")
