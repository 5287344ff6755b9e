"""Reranker cards: one TOML file each; and the card that follows from `hf:ORG/NAME`, `path:DIR` and `py:MODULE:NAME`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from r2med.core.cards import Catalogue
from r2med.data.dataset_cards import Instruction
from r2med.encoders.model_cards import MORE_MODELS, checked_python_path, hub_repository, model_folder, safe_name
from r2med.encoders.weights import WeightsCard

Loader = Literal["classifier", "yes-no", "custom"]


class RerankerCard(WeightsCard):
    """All that is needed to score pairs with a cross-encoder as its authors meant."""

    base: str = ""
    """Where the repository holds a LoRA adapter: the model it is merged into."""
    base_revision: str = ""
    """The commit of that model."""
    loader: Loader
    """classifier: a classification head; yes-no: a language model's logit of "yes" less that of "no"."""
    architecture: str = ""
    """The class of transformers that loads it; empty: as its configuration says."""
    logit: Literal["", "only", "second"] = ""
    """Which of a classifier's logits is the score; empty: the only one, or the second of two."""
    query: str = "{query}"
    """What is around a query; may name {kind}, {what} and {domain} of the dataset's instruction."""
    document: str = "{document}"
    """What stands before a document. What comes after it belongs into `after`: a cut must not lose it."""
    join: Literal["tokenizer", "bos", "none"] = "tokenizer"
    """How the two are joined: as the tokenizer joins a pair, with a beginning-of-sequence token before each, bare."""
    before: str = ""
    """What a prompt begins with; not where the tokenizer joins pairs."""
    after: str = ""
    """What a prompt ends with, whatever is cut; not where the tokenizer joins pairs."""
    max_tokens: int = Field(512, ge=0, le=1 << 20)
    """Of a whole pair, special tokens counted; 0: the model's own limit."""
    cut_query: Literal["middle", "end"] = "middle"
    """Where a query is cut that is too long beside its document. A case begins with the complaint and ends with the
    last findings and the question, so the default keeps both; `end` is what tokenizers do, and what was published.
    """
    parameters: str = ""
    """Its size, such as 568M."""
    licence: str = ""
    """Under which the weights may be used."""
    notes: tuple[str, ...] = ()
    """What else one should know, a sentence each."""

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
        before, _, after = instruction.fill(self.query).partition("{query}")
        return before, after


RERANKERS = Catalogue("rerankers", RerankerCard, "reranker", MORE_MODELS)
"""Every reranker card by name; those with variants also as NAME:VARIANT."""


def resolve_reranker(spec: str) -> RerankerCard:
    """Return the card of anything that a user may name as a reranker. Raises UserError if it names none.

    Models without a card are classifiers with a limit of their own.
    """
    kind, _, rest = spec.partition(":")
    if kind == "hf":
        repository, revision = hub_repository(rest)
        name = safe_name(f"hf-{repository}")
        return RerankerCard(name=name, repository=repository, revision=revision, loader="classifier", max_tokens=0)
    if kind == "path":
        folder = model_folder(rest)
        name = safe_name(f"path-{folder.name}")
        return RerankerCard(name=name, repository=str(folder), loader="classifier", max_tokens=0)
    if kind == "py":
        path = checked_python_path(rest, "reranker")
        return RerankerCard(name=safe_name(f"py-{path}"), repository=path, loader="custom", max_tokens=0)
    return RERANKERS.card(spec)
