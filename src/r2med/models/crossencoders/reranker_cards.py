"""Reranker cards: one TOML file each, or made from `hf:ORG/NAME`, `path:DIR`, `py:MODULE:NAME`, `vllm:MODEL`…"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from r2med.data.dataset_cards import Instruction
from r2med.data.training_sheet import lineage_of
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.names import Catalogue
from r2med.models.crossencoders.rerank_apis import RERANK_APIS, own_servers
from r2med.models.encoders.model_cards import MORE_MODELS, checked_python_path, hub_repository, model_folder, safe_name
from r2med.models.encoders.weights import WeightsCard

WeightsLoader = Literal["classifier", "yes-no", "t5"]
"""Loaders of models whose weights run in this process."""
LOADERS: tuple[str, ...] = (*get_args(WeightsLoader), "custom")
"""Loaders of models that run in this process."""


class RerankerCard(WeightsCard):
    """Everything needed to score pairs with a cross-encoder as its authors intended."""

    loader: str
    """What scores a pair.

    classifier: a classification head. yes-no: a language model's logit of "yes" minus that of "no". t5: the logit of
    <extra_id_10> at the first step of a T5's decoder, as in RankT5. custom: a user's object. The others are rerank
    APIs, and `repository` is the API's name of the model.
    """
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
    price_per_million_tokens: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Price of an API in dollars. Without a price, the cost is unknown."""
    price_per_thousand_searches: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Price of an API that bills searches, in dollars. One search ranks up to 100 documents."""
    documents_per_request: int = Field(0, ge=0, le=100_000)
    """Maximum number of documents that an API gets at once. 0: the limit of the API."""
    parameters: str = ""
    """Size of the model, such as 568M."""
    licence: str = ""
    """Licence of the weights."""
    notes: tuple[str, ...] = ()
    """Further notes for users, one sentence each."""

    @model_validator(mode="before")
    @classmethod
    def _cut_by_the_api(cls, content: Any) -> Any:
        """Give a card of an API no limit of tokens: its server cuts texts."""
        if isinstance(content, Mapping) and str(content.get("loader")) in RERANK_APIS:
            return {"max_tokens": 0, **content}
        return content

    @field_validator("loader")
    @classmethod
    def _loader_exists(cls, loader: str) -> str:
        if loader not in LOADERS and loader not in RERANK_APIS:
            loaders = (*LOADERS, *RERANK_APIS)
            raise ValueError(f"{loader!r}{nearest(loader, loaders)} is no loader: {', '.join(loaders)}")
        return loader

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

    @model_validator(mode="after")
    def _fits_its_loader(self) -> RerankerCard:
        in_api = {"price_per_million_tokens", "price_per_thousand_searches", "documents_per_request"}
        in_process = {"base", "architecture", "logit", "document", "join", "before", "after", "cut_query"}
        for name in sorted(self.model_fields_set & (in_process if self.is_api else in_api)):
            raise ValueError(f"{name} has no meaning with the loader {self.loader}")
        if self.is_api and not self.repository:
            raise ValueError("an API needs the name of its model as repository")
        if self.is_api and self.max_tokens:
            raise ValueError("max_tokens has no meaning for an API: its server cuts texts that are too long")
        return self

    @property
    def is_api(self) -> bool:
        """True if the model is behind an API."""
        return self.loader in RERANK_APIS

    @property
    def is_priced(self) -> bool:
        """True if the price is known. A server of the user's own has none."""
        known = self.price_per_million_tokens is not None or self.price_per_thousand_searches is not None
        return known or not self.is_api or self.loader in own_servers()

    def dollars(self, tokens: int, searches: float) -> float:
        """Return the price of some tokens and searches."""
        of_tokens = tokens * (self.price_per_million_tokens or 0.0) / 1e6
        return of_tokens + searches * (self.price_per_thousand_searches or 0.0) / 1e3

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
        trained = lineage_of(folder)
        return RerankerCard(name=name, repository=str(folder), loader="classifier", max_tokens=0, training=trained)
    if kind == "py":
        path = checked_python_path(rest, "reranker")
        return RerankerCard(name=safe_name(f"py-{path}"), repository=path, loader="custom", max_tokens=0)
    if kind in own_servers():
        return _served_card(kind, rest)
    return RERANKERS.card(spec)


def is_served(spec: str) -> bool:
    """Return True for API:MODEL, a model on a server of the user's own."""
    return spec.partition(":")[0] in own_servers()


def _served_card(api: str, model: str) -> RerankerCard:
    if not model.strip():
        raise UserError(f"{api}: the form of a model on a server of your own is {api}:MODEL")
    return RerankerCard(name=safe_name(f"{api}-{model}"), repository=model, loader=api)
