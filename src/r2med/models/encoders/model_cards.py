"""Model cards: one TOML file each, or made from `hf:ORG/NAME`, `path:DIR` and `py:MODULE:NAME`."""

from __future__ import annotations

import logging
import re
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from r2med.data.dataset_cards import Instruction
from r2med.data.training_sheet import lineage_of
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.names import Catalogue
from r2med.foundation.core.spec import decoded, typed_path
from r2med.foundation.store import digest
from r2med.models.encoders import weights
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS

log = logging.getLogger("r2med")


_VERSIONS = re.compile(r"(==|!=|<=?|>=?|~=)\d+(\.\d+)*(,(==|!=|<=?|>=?|~=)\d+(\.\d+)*)*")


class Side(BaseModel):
    """How texts of one role are encoded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prefix: str = ""
    """Text before each input.

    It may contain {kind}, {what}, {domain}, {inst_query} and {inst_document} of the dataset's instruction.
    """
    max_tokens: int = 512
    """Maximum number of tokens of a text, including special tokens."""
    repository: str = ""
    """Repository of this role's encoder, if it differs from the model's."""
    revision: str = ""
    """Commit of that repository."""
    pair_with_empty: bool = False
    """Encode the pair ("", text), as MedCPT does for articles with an empty title."""
    input_type: str = ""
    """Value of the API field that states the kind of text."""

    def prefix_for(self, instruction: Instruction) -> str:
        """Return the prefix filled with the words of the dataset's instruction."""
        return instruction.fill(self.prefix)


LateLoader = Literal["multi-vector", "sparse"]
"""Loaders of models that give a text more than one vector, or weights of terms."""
LATE_LOADERS: tuple[LateLoader, ...] = get_args(LateLoader)
LATE_FOLDERS = {"multi-vector": "token-vectors", "sparse": "term-weights"}
"""Loader -> the folder of the store for what it makes of documents. That of all other loaders is `vectors`."""
PROCESS_LOADERS = ("transformers", "sentence-transformers", "remote-code", *LATE_LOADERS, "custom")
"""Loaders of models that run in this process. The others are embedding APIs."""


class ModelCard(weights.WeightsCard):
    """Everything needed to encode with a model as its authors intended."""

    loader: str
    """What runs the model: transformers with the pooling below, sentence-transformers, code of its own repository
    (remote-code), a user's object (custom), or the name of an embedding API. multi-vector: a model with a vector for
    each token (ColBERT). sparse: a model with weights of terms (SPLADE). Both need sentence-transformers 6.
    """
    architecture: str = ""
    """Class of transformers that loads the model. Empty: as its configuration says."""
    part: str = ""
    """The part of the repository's model that encodes, if its heads are left out. Its weights begin with this name, and
    `text_config` of the configuration describes it. The architecture is then a model type of transformers.
    """
    pooling: Literal["", "cls", "mean", "last"] = ""
    """How token vectors become one vector: the first token, the mean, or the last token. Empty: as the loader does."""
    pool_prompt: bool = True
    """True if the tokens of the prefix are part of mean pooling."""
    bidirectional: bool = False
    """True if a decoder attends in both directions."""
    append_eos: bool = False
    """Make sure that a text ends in the end-of-sequence token, within the limit."""
    normalise: bool = False
    """True if vectors are scaled to length 1."""
    similarity: Literal["dot", "cosine"] = "cosine"
    """How two vectors are compared."""
    dimension: int = 0
    """Number of dimensions of a vector. 0: unknown before the model runs."""
    parameters: str = ""
    """Size of the model, such as 335M, 7B, or 2 × 110M if queries and documents have separate encoders."""
    licence: str = ""
    """Licence of the weights."""
    price_per_million_tokens: float = 0.0
    """Price of an API in dollars."""
    transformers: str = ""
    """Versions of transformers that the model works with, such as <5, if its vectors are wrong with others."""
    sentence_transformers: str = ""
    """Versions of sentence-transformers that the model works with, if it does not work with others."""
    known_pairs: tuple[tuple[str, str], ...] = ()
    """Pairs of a query and a passage that answers it. Each query must be nearer to its own passage than to the passages
    of the other pairs. This is tested when the model is first loaded with some versions of its libraries.
    """
    as_json: bool = False
    """Send each text to an API as a JSON string, with quotes and escapes, and with line ends replaced by spaces."""
    notes: tuple[str, ...] = ()
    """Further notes for users, one sentence each."""
    query: Side = Side()
    """How queries are encoded."""
    document: Side = Side()
    """How documents are encoded."""
    generated: Literal["query", "document", "bare"] = "bare"
    """How generated text is encoded: like a query, like a document, or bare: as a query without its prefix."""

    @field_validator("loader")
    @classmethod
    def _loader_exists(cls, loader: str) -> str:
        if loader not in PROCESS_LOADERS and loader not in EMBEDDING_APIS:
            loaders = (*PROCESS_LOADERS, *EMBEDDING_APIS)
            raise ValueError(f"{loader!r}{nearest(loader, loaders)} is no loader: {', '.join(loaders)}")
        return loader

    @model_validator(mode="after")
    def _fields_fit_the_loader(self) -> ModelCard:
        for name in ("base", "part"):
            if getattr(self, name) and self.loader != "transformers":
                raise ValueError(f"{name} has no meaning with the loader {self.loader}")
        if self.known_pairs and self.loader in LATE_LOADERS:
            raise ValueError(f"known_pairs are not tested with the loader {self.loader}")
        return self

    @field_validator("known_pairs")
    @classmethod
    def _pairs_can_be_told_apart(cls, pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        if len(pairs) == 1:
            raise ValueError("one pair alone tests nothing: give two pairs or more")
        return pairs

    @field_validator("transformers", "sentence_transformers")
    @classmethod
    def _versions_can_be_read(cls, versions: str) -> str:
        if versions and not _VERSIONS.fullmatch(versions):
            raise ValueError(f"{versions!r} names no versions: write them like <5, ==4.46.3 or >=4.46,<5")
        return versions

    @property
    def spec(self) -> str:
        """Name of the model as a user types it."""
        return f"{self.name}:{self.variant}" if self.variant else self.name

    def side(self, role: str) -> Side:
        """Return how texts of a role are encoded."""
        if role == "generated":
            if self.generated == "bare":
                return self.query.model_copy(update={"prefix": ""})
            role = self.generated
        return self.document if role == "document" else self.query


MORE_MODELS = "r2med list models shows all; hf:ORG/NAME and mteb:ORG/NAME run others"

MODELS: Catalogue[ModelCard] = Catalogue("models", ModelCard, "model", more=MORE_MODELS)
"""Every model that has a card, by name. Variants are CARD:VARIANT."""

SENTENCE_CONFIG = "config_sentence_transformers.json"
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""Names that models use for their document prompt, in the order in which sentence-transformers looks for them."""

MAX_NAME_LENGTH = 120

PROMPTED_FAMILIES = (
    (re.compile(r"\be5\b"), "E5", ("e5-small", "e5-base", "e5-large", "e5")),
    (re.compile(r"\bbge-(small|base|large)\b"), "BGE", ("bge-small", "bge-base", "bge")),
    (re.compile(r"\bgte-qwen"), "GTE", ("gte-qwen2",)),  # The smaller GTE models have no prompts.
    (re.compile(r"\binstructor\b"), "Instructor", ("inst-l", "inst-xl")),
)
"""Families of models that need prompts: a pattern for their names, a title, and the cards that have the prompts."""

_LOADER_OF: dict[str, LateLoader] = {
    "ColBERT": "multi-vector",
    "MultiVectorEncoder": "multi-vector",
    "SparseEncoder": "sparse",
}
"""What the files of a model say it is -> the loader, if a text has no single vector."""

_PYTHON_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def resolve_card(spec: str) -> ModelCard:
    """Return the card of anything that a user may give as a model. Raises UserError if there is no such model."""
    kind, _, rest = spec.partition(":")
    if spec in MODELS:
        return MODELS[spec]
    if kind == "hf":
        return _hub_card(rest)
    if kind == "path":
        return _folder_card(rest)
    if kind == "py":
        return _python_card(rest)
    if _PYTHON_PATH.fullmatch(spec) and kind not in MODELS:
        return _python_card(spec)
    return MODELS.card(spec)


def _hub_card(spec: str) -> ModelCard:
    repository, revision = hub_repository(spec)
    name = safe_name(f"hf-{repository}")
    commit = weights.commit_of(name, repository, revision)
    file = weights.small_file(name, repository, commit, SENTENCE_CONFIG)
    config = weights.json_object(file) if file else {}
    if not config.get("prompts"):
        _notice_missing_prompts(f"hf:{repository}", repository, 0)
    card = _sentence_card(f"hf-{repository}", repository, commit, config)
    return card.model_copy(update={"floating": commit != revision})


def _folder_card(typed: str) -> ModelCard:
    folder = model_folder(typed)
    file = folder / SENTENCE_CONFIG
    config = weights.json_object(file) if file.is_file() else {}
    if not config.get("prompts"):
        about = weights.json_object(folder / "config.json") if (folder / "config.json").is_file() else {}
        names = f"{folder.name} {about.get('_name_or_path', '')}"
        _notice_missing_prompts(f"path:{folder}", names, about.get("hidden_size") or about.get("d_model") or 0)
    card = _sentence_card(f"path-{folder.name}", str(folder), "", config)
    return card.model_copy(update={"training": lineage_of(folder)})


@cache
def _notice_missing_prompts(spec: str, names: str, width: int) -> None:
    """Log a warning if a model's name shows that it needs prompts but its files have none."""
    names = names.lower().replace("_", "-")
    family = next((family for family in PROMPTED_FAMILIES if family[0].search(names)), None)
    if family is None:
        return
    _, title, cards = family
    of_hub = [name for name in cards if spec == f"hf:{MODELS[name].repository}"]
    same = of_hub or [name for name in cards if MODELS[name].dimension == width] or list(cards)
    folder = spec.removeprefix("path:") if spec.startswith("path:") else "DIR"
    log.warning(
        "%s looks like a model of the family %s, which needs a prompt before its texts, but its files have none; "
        "texts are encoded without a prompt. The card %s has the prompts: %s",
        spec,
        title,
        " or ".join(same),
        f"r2med run {quote(same[0])}" if of_hub else f"r2med run {quote(same[0])} --model-path {same[0]}={folder}",
    )


def _python_card(path: str) -> ModelCard:
    nothing = Side(max_tokens=0)
    return ModelCard(
        name=safe_name(f"py-{path}"),
        repository=checked_python_path(path, "model"),
        loader="custom",
        query=nothing,
        document=nothing,
    )


def _sentence_card(name: str, repository: str, revision: str, config: dict[str, Any]) -> ModelCard:
    """Return a card for any sentence-transformers model, with its own prompts and similarity.

    `max_tokens` 0 means the model's own limit.
    """
    prompts = config.get("prompts") or {}
    loader = _LOADER_OF.get(str(config.get("model_type")), "sentence-transformers")
    dot = loader != "sentence-transformers" or config.get("similarity_fn_name") == "dot"
    default = prompts.get(config.get("default_prompt_name") or "") or ""
    query = prompts.get("query", default)
    document = next((prompts[name] for name in DOCUMENT_PROMPTS if name in prompts), default)
    return ModelCard(
        name=safe_name(name),
        repository=repository,
        revision=revision,
        loader=loader,
        similarity="dot" if dot else "cosine",
        query=Side(prefix=query or "", max_tokens=0),
        document=Side(prefix=document or "", max_tokens=0),
    )


def hub_repository(spec: str) -> tuple[str, str]:
    """Return the repository and revision of ORG/NAME@REVISION. Raises UserError if the form is wrong."""
    repository, _, revision = spec.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise UserError(f"hf:{spec}: the form of a hub model is hf:ORG/NAME or hf:ORG/NAME@REVISION")
    return repository, revision


def model_folder(typed: str) -> Path:
    """Return the folder of path:DIR. Raises UserError if it is not a model's folder."""
    folder = typed_path(decoded(typed)).absolute()
    if not folder.is_dir():
        raise UserError(f"path:{typed}: there is no such folder")
    return weights.checked_folder(folder, f"path:{typed}")


def checked_python_path(path: str, noun: str) -> str:
    """Return MODULE:NAME. Raises UserError if the form is wrong."""
    module, _, name = path.partition(":")
    if not module or not name:
        raise UserError(f"py:{path}: the form of a Python {noun} is py:MODULE:NAME")
    return path


def safe_name(text: str) -> str:
    """Return a name that can be part of a file name. File systems allow 255 bytes, including endings."""
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.") or "model"
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 13]}-{digest(text)[:12]}"
