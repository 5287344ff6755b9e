"""Reranker cards: one TOML file each, with all that scoring a query and a document takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from r2med import plugins
from r2med.data.dataset_cards import Instruction
from r2med.errors import UserError, checked_name, nearest
from r2med.toml_card import read_toml, validated

Loader = Literal["classifier", "yes-no", "custom"]


class RerankerCard(BaseModel):
    """All that is needed to score pairs with a cross-encoder as its authors meant."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    repository: str = ""
    revision: str = ""
    package: str = ""
    """An installed Python package that carries the weights in its folder `model`."""
    base: str = ""
    """Where the repository holds a LoRA adapter: the model it is merged into."""
    base_revision: str = ""
    loader: Loader
    """classifier: a classification head; yes-no: a language model's logit of "yes" less that of "no"."""
    architecture: str = ""
    logit: Literal["", "only", "second"] = ""
    """Which of a classifier's logits is the score; empty: the only one, or the second of two."""
    query: str = "{query}"
    """What is around a query; may name {kind}, {what} and {domain} of the dataset's instruction."""
    document: str = "{document}"
    """What stands before a document. What comes after it belongs into `after`: a cut must not lose it."""
    join: Literal["tokenizer", "bos", "none"] = "tokenizer"
    """How the two are joined: as the tokenizer joins a pair, with a beginning-of-sequence token before each, bare."""
    before: str = ""
    """What a prompt begins with, and ends with; not where the tokenizer joins pairs."""
    after: str = ""
    max_tokens: int = 512
    """Of a whole pair, special tokens counted; 0: the model's own limit."""
    parameters: str = ""
    licence: str = ""
    notes: tuple[str, ...] = ()

    @field_validator("query")
    @classmethod
    def _has_one_query(cls, text: str) -> str:
        if text.count("{query}") != 1:
            raise ValueError("it must hold {query} once")
        return text

    @field_validator("document")
    @classmethod
    def _ends_in_document(cls, text: str) -> str:
        if text.count("{document}") != 1 or not text.endswith("{document}"):
            raise ValueError("it must hold {document} once, at its end")
        return text

    @model_validator(mode="after")
    def _joined_once(self) -> RerankerCard:
        if self.join == "tokenizer" and (self.before or self.after):
            raise ValueError(
                'before and after need join = "none" or "bos": the tokenizer begins and ends a pair itself'
            )
        return self

    def query_parts(self, instruction: Instruction) -> tuple[str, str]:
        """Return what stands before and after a query, with the dataset's words in it."""
        text = self.query
        words = {"{kind}": instruction.kind, "{what}": instruction.what, "{domain}": instruction.domain}
        for name, word in words.items():
            text = text.replace(name, word)
        before, _, after = text.partition("{query}")
        return before, after


@cache
def rerankers() -> Mapping[str, RerankerCard]:
    """Return every card by name."""
    found = {}
    for name, file in sorted(plugins.files("rerankers", ".toml").items()):
        content = {"name": checked_name(name, "reranker"), **read_toml(file)}
        found[name] = validated(RerankerCard, content, file)
    return found


def reranker_card(name: str) -> RerankerCard:
    """Return the card of a name; one that does not exist is one line with the nearest."""
    if name in rerankers():
        return rerankers()[name]
    raise UserError(f"no reranker {name!r}{nearest(name, rerankers())}: r2med models list shows all")
