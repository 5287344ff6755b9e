"""Reranker cards: one TOML file each, or made from `hf:ORG/NAME`, `path:DIR` and `py:MODULE:NAME`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from r2med.core.cards import Catalogue
from r2med.data.dataset_cards import Instruction
from r2med.encoders.model_cards import MORE_MODELS, checked_python_path, hub_repository, model_folder, safe_name
from r2med.encoders.weights import WeightsCard

Loader = Literal["classifier", "yes-no", "custom"]


class RerankerCard(WeightsCard):
    """Everything needed to score pairs with a cross-encoder as its authors intended."""

    base: str = ""
    """For a repository with a LoRA adapter, the model that it is merged into."""
    base_revision: str = ""
    """Commit of that model."""
    loader: Loader
    """classifier: a classification head. yes-no: a language model's logit of "yes" minus that of "no"."""
    architecture: str = ""
    """Class of transformers that loads the model. Empty: as its configuration says."""
    logit: Literal["", "only", "second"] = ""
    """The logit of a classifier that is the score. Empty: the only one, or the second of two."""
    query: str = "{query}"
    """Template around a query. It may contain {kind}, {what} and {domain} of the dataset's instruction."""
    document: str = "{document}"
    """Text before a document. Text after it belongs in `after`, because a cut must not remove it."""
    join: Literal["tokenizer", "bos", "none"] = "tokenizer"
    """How the two are joined: as the tokenizer joins a pair, with a beginning-of-sequence token before each, or bare.
    """
    before: str = ""
    """Beginning of a prompt. Not allowed if the tokenizer joins pairs."""
    after: str = ""
    """End of a prompt, which is never cut. Not allowed if the tokenizer joins pairs."""
    max_tokens: int = Field(512, ge=0, le=1 << 20)
    """Maximum number of tokens of a whole pair, including special tokens. 0: the model's own limit."""
    cut_query: Literal["middle", "end"] = "middle"
    """Where a query is cut that is too long.

    A case begins with the complaint and ends with the last findings and the question, so the default keeps both ends.
    `end` is what tokenizers do and what was published.
    """
    parameters: str = ""
    """Size of the model, such as 568M."""
    licence: str = ""
    """Licence of the weights."""
    notes: tuple[str, ...] = ()
    """Further notes for users, one sentence each."""

    @field_validator("query")
    @classmethod
    def _has_one_query(cls, text: str) -> str:
        if text.count("{query}") != 1:
            raise ValueError("it must contain {query} once")
        return text

    @field_validator("document")
    @classmethod
    def _ends_in_document(cls, text: str) -> str:
        if text.count("{document}") != 1 or not text.endswith("{document}"):
            raise ValueError("it must contain {document} once, at its end")
        return text

    @model_validator(mode="after")
    def _joined_once(self) -> RerankerCard:
        if self.join == "tokenizer" and (self.before or self.after):
            raise ValueError(
                'before and after need join = "none" or "bos"; with "tokenizer", the tokenizer begins and ends a pair'
            )
        return self

    def query_parts(self, instruction: Instruction) -> tuple[str, str]:
        """Return the text before and after a query, filled with the words of the dataset's instruction."""
        before, _, after = instruction.fill(self.query).partition("{query}")
        return before, after


RERANKERS = Catalogue("rerankers", RerankerCard, "reranker", MORE_MODELS)
"""Every reranker card by name. Variants are NAME:VARIANT."""


def resolve_reranker(spec: str) -> RerankerCard:
    """Return the card of anything that a user may give as a reranker. Raises UserError if there is no such model.

    Models without a card are classifiers with their own limit.
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
