"""Find the weights of a model and identify their exact version.

Sources in this order: a folder given by the user (--model-path, R2MED_MODELS), an installed package, the hub at one
commit.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from r2med.data.training_sheet import Lineage
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store, default_store
from r2med.foundation.store.file_digests import path_digest

T = TypeVar("T")

log = logging.getLogger("r2med")

HUB_TIMEOUT = 20
"""Seconds within which the hub must answer."""

WEIGHT_SUFFIXES = (".safetensors", ".bin")
TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
OFFLINE_REASON = "HF_HUB_OFFLINE is set"
COMMIT_PATTERN = re.compile(r"[0-9a-f]{40}")


IN_FOLDER = "folder"
"""Value in a record for weights that were not fetched from the hub."""


class WeightsCard(BaseModel):
    """The fields that identify weights. Cards of encoders and rerankers begin with them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Name of the model as a user types it. Default: the name of the file."""
    variant: str = ""
    """The part after the colon in NAME:VARIANT."""
    repository: str = ""
    """Repository on the hub, or an absolute folder. For an API, the name of the model that it is asked for."""
    revision: str = ""
    """Commit of the repository, so that a push by its authors changes no score. A branch or tag is not pinned."""
    floating: bool = False
    """True if the revision was just looked up from a branch, as for hf:ORG/NAME. Not for card files."""
    package: str = ""
    """Installed Python package that contains the weights in its folder `model`."""
    base: str = ""
    """For a repository with a LoRA adapter, the model that it is merged into."""
    base_revision: str = ""
    """Commit of that model."""
    training: Lineage | None = None
    """What the model was trained with: name, digest of the file of rows, datasheet, overlaps. None: not stated."""


@dataclass(frozen=True)
class Weights:
    """Weights identified by name and revision. They are fetched when they are first needed."""

    name: str
    """Name of the model, for messages."""
    repository: str
    revision: str
    """Commit on the hub, or a digest of all files of a folder."""
    folder: Path | None = None
    base: Weights | None = None
    """For a LoRA adapter, the model that it is merged into. Its tokenizer is used too."""
    pinned: bool = True
    """False if a push by the model's authors would change the weights of this name."""

    def fetch(self) -> Path:
        """Return the local folder. The weights are downloaded if they are not there yet."""
        return self.folder or _download(self)

    def fetch_both(self) -> tuple[Path, Path | None]:
        """Return the local folder of the model, and that of the adapter to merge into it."""
        return (self.fetch(), None) if self.base is None else (self.base.fetch(), self.fetch())

    def base_key(self) -> dict[str, str]:
        """Return what identifies the base, for keys; empty without one."""
        return {"base": self.base.repository, "base_revision": self.base.revision} if self.base else {}


def find_adapted(card: WeightsCard, options: Setup, store: Store) -> Weights:
    """Return the weights of a card whose repository may hold a LoRA adapter, without downloading them.

    The user can give a folder for the base as NAME.base. If the folder of NAME contains a whole merged model, no base
    is needed.
    """
    by_hand = options.path_of(card.name)
    merged = by_hand and (by_hand / "config.json").is_file() and not (by_hand / "adapter_config.json").is_file()
    if merged or not card.base:
        return find(card, options, store=store)
    changes = {"name": f"{card.name}.base", "repository": card.base, "revision": card.base_revision}
    return find(card, options, base=find(card.model_copy(update=changes), options, store=store), store=store)


def find(
    card: WeightsCard,
    options: Setup,
    repository: str = "",
    role: str = "",
    revision: str = "",
    base: Weights | None = None,
    store: Store | None = None,
) -> Weights:
    """Return the weights that a card means on this machine, without downloading them.

    With a `base`, they are an adapter of it. The `store` remembers the digests of large files. Raises UserError if
    there are none.
    """
    name, wanted = card.name, repository or card.repository
    folder = options.path_of(name)
    if folder is not None and repository and repository != card.repository:
        folder = _tower(folder, wanted, role)
    elif folder is None and card.package and (spec := importlib.util.find_spec(card.package)) and spec.origin:
        folder = Path(spec.origin).parent / "model"
    elif folder is None and Path(wanted).is_absolute():  # The folder of path:DIR.
        folder, wanted = Path(wanted), ""
    if folder is not None:
        checked = checked_adapter if base else checked_folder
        digests = store or options.store or default_store()
        revision = path_digest(checked(folder, name), digests, FOREIGN_SUFFIXES)
        return Weights(name, wanted, revision, folder, base)
    if not wanted:
        raise UserError(
            f"model {name}: its card names no repository; give its folder with model_paths (--model-path {name}=DIR)",
        )
    revision = revision or card.revision
    commit = commit_of(name, wanted, revision)
    pinned = bool(COMMIT_PATTERN.fullmatch(revision)) and not card.floating and (base is None or base.pinned)
    if not pinned:
        _notice_unpinned(name, wanted, commit)
    return Weights(name, wanted, commit, base=base, pinned=pinned)


@cache
def _notice_unpinned(name: str, repository: str, commit: str) -> None:
    pin = f"hf:{repository}@{commit}" if name.startswith("hf-") else f'revision = "{commit}" in its card'
    log.warning(
        "model %s: its revision is not pinned, so a push by its authors changes scores; to pin it, use %s", name, pin
    )


def is_here(card: WeightsCard, options: Setup) -> bool:
    """Return True if a card's weights are on this machine. Nothing is fetched."""
    if options.path_of(card.name) is not None or (card.package and importlib.util.find_spec(card.package)):
        return True
    if not card.repository:
        return False
    # The index of a repository's files comes first and the weights last. An interrupted download has only the index.
    revision = card.revision or None
    names = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
    cached = (_hub().try_to_load_from_cache(card.repository, name, revision=revision) for name in names)
    return any(isinstance(file, str) for file in cached)


def _tower(folder: Path, repository: str, role: str) -> Path:
    names = [repository.split("/")[-1], role]
    for name in filter(None, names):
        if (folder / name).is_dir():
            return folder / name
    raise UserError(f"{folder} has no folder for one of the model's two encoders: {' or '.join(filter(None, names))}")


def checked_folder(folder: Path, name: str) -> Path:
    """Return the folder if it has everything that a model needs. Raises UserError otherwise."""
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise UserError(f"model {name}: {folder} has no config.json; it must be a model saved by transformers")
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not any(path.suffix in WEIGHT_SUFFIXES for path in files):
        other = [path.suffix for path in files if path.suffix in (".onnx", ".gguf", ".h5", ".xml")]
        only = f", only {other[0]} files, which r2med cannot read" if other else ""
        raise UserError(
            f"model {name}: {folder} has no weights (*.safetensors or *.bin){only}; save the model there with "
            "save_pretrained of transformers or sentence-transformers"
        )
    if not any(path.name in TOKENIZER_FILES for path in files):
        raise UserError(
            f"model {name}: {folder} has no tokenizer ({TOKENIZER_FILES[0]} or {TOKENIZER_FILES[1]}); copy it there"
        )
    return folder


def checked_adapter(folder: Path, name: str) -> Path:
    """Return the folder if it has everything that a LoRA adapter needs. The tokenizer is the base model's."""
    if not (folder / "adapter_config.json").is_file():
        raise UserError(f"model {name}: {folder} has no adapter_config.json; it must be an adapter saved by peft")
    if not any((folder / f"adapter_model{suffix}").is_file() for suffix in WEIGHT_SUFFIXES):
        raise UserError(f"model {name}: {folder} has no adapter_model.safetensors or adapter_model.bin")
    return folder


FOREIGN_SUFFIXES = (".md", ".onnx", ".h5", ".msgpack", ".ot", ".gguf", ".xml")
"""Endings of files in a model's folder that our loaders do not read."""


def is_offline() -> bool:
    """Return True if the user asked to stay offline."""
    on = {"1", "true", "yes", "on"}
    return any(os.environ.get(name, "").lower() in on for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))


def _hub() -> Any:
    import huggingface_hub

    return huggingface_hub


@cache
def commit_of(name: str, repository: str, revision: str) -> str:
    """Return the commit that a branch or tag points to. A full commit is returned unchanged.

    The hub is asked once per process, because all parts of a run must use the same weights.
    """
    if COMMIT_PATTERN.fullmatch(revision):
        return revision
    branch = revision or None
    return _from_hub(
        (name, repository, revision),
        lambda hub: str(hub.HfApi().model_info(repository, revision=branch, timeout=HUB_TIMEOUT).sha),
        lambda hub: Path(hub.snapshot_download(repository, revision=branch, local_files_only=True)).name,
    )


def _download(wanted: Weights) -> Path:
    repository, commit = wanted.repository, wanted.revision

    def download(hub: Any) -> Path:
        # Asked first, because without a network this fails immediately. A download would try for half a minute.
        listed = hub.HfApi().model_info(repository, revision=commit, timeout=HUB_TIMEOUT).siblings or ()
        files = _needed([file.rfilename for file in listed])
        return Path(hub.snapshot_download(repository, revision=commit, allow_patterns=files))

    def cached(hub: Any) -> Path:
        folder = Path(hub.snapshot_download(repository, revision=commit, local_files_only=True))
        return (checked_adapter if wanted.base else checked_folder)(folder, wanted.name)

    return _from_hub((wanted.name, repository, commit), download, cached)


def _from_hub(wanted: tuple[str, str, str], ask: Callable[[Any], T], look: Callable[[Any], T]) -> T:
    """Return the answer of the hub, or the content of its cache if the hub does not answer.

    `wanted` is (name of the model, repository, revision), for messages. Raises UserError if neither works.
    """
    hub = _hub()
    reason = OFFLINE_REASON
    if not is_offline():
        try:
            return ask(hub)
        except Exception as error:  # The client may raise anything, and the cache may still have the files.
            if refusal := _refusal(error):
                raise _unavailable(*wanted, refusal) from None
            reason = first_line(error)
    try:
        return look(hub)
    except UserError:
        raise
    except Exception:
        raise _unavailable(*wanted, reason) from None


def small_file(name: str, repository: str, commit: str, file: str) -> Path | None:
    """Return one small file of a repository, or None if the repository has no such file.

    Raises UserError if this is unknown. A model must not run without its prompts because of a lost connection.
    """
    hub = _hub()
    reason = OFFLINE_REASON
    if not is_offline():
        try:
            return Path(hub.hf_hub_download(repository, file, revision=commit))
        except Exception as error:
            # LocalEntryNotFoundError means that the hub did not answer. It is a subclass of EntryNotFoundError, which
            # means that the file does not exist.
            if isinstance(error, hub.utils.EntryNotFoundError) and not isinstance(
                error, hub.utils.LocalEntryNotFoundError
            ):
                return None
            reason = _refusal(error) or first_line(error)
    cached = hub.try_to_load_from_cache(repository, file, revision=commit)
    if isinstance(cached, str):
        return Path(cached)
    if cached is not None:  # The cache's mark for a file that does not exist on the hub.
        return None
    raise _unavailable(name, f"{file} of {repository}", commit, reason)


def _needed(files: list[str]) -> list[str]:
    """Return the files of a repository, without copies of the weights for other programs."""
    safe = any(name.endswith(".safetensors") for name in files)
    others = (".h5", ".msgpack", ".onnx", ".ot", ".gguf", ".pth", ".pt", ".png", ".jpg", ".pdf")
    folders = ("onnx/", "openvino/", "coreml/", ".git")
    return [
        name
        for name in files
        if not name.endswith(others)
        and not name.startswith(folders)
        and not (safe and re.fullmatch(r"pytorch_model.*\.bin(\.index\.json)?", name))
    ]


def _refusal(error: Exception) -> str:
    """Return why the hub refused, or an empty string if it did not answer.

    In that case the cache may have the files.
    """
    utils = _hub().utils
    refusals = (
        (utils.GatedRepoError, "accept its licence on the hub first, then run hf auth login"),
        (utils.RepositoryNotFoundError, "there is no such repository, or it is private"),
        (utils.RevisionNotFoundError, "it does not have this revision"),
    )
    return next((reason for kind, reason in refusals if isinstance(error, kind)), "")


def first_line(error: Exception) -> str:
    """Return the first line of an error message, or the type of the error if the message is empty."""
    lines = (line.strip() for line in str(error).split("\n"))
    return next(filter(None, lines), type(error).__name__)[:160]


def _unavailable(name: str, repository: str, revision: str, reason: str) -> UserError:
    at = f" at revision {revision[:12]}" if revision else ""
    # hf:ORG/NAME has no short name for --model-path. path:DIR runs the same weights.
    instead = (
        "run it as path:DIR" if name.startswith("hf-") else f"use model_paths (--model-path {name}=DIR) or R2MED_MODELS"
    )
    return UserError(
        f"model {name}: cannot get {repository}{at} from the hub ({reason}); try again online, or, if you have its "
        f"folder, {instead}",
    )


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty one for any other value. Raises UserError if it is not JSON."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    return content if isinstance(content, dict) else {}
