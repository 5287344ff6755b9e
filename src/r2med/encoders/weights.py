"""Where a model's weights come from, and which weights exactly they are.

In this order: a folder named by hand (--model-path, R2MED_MODELS), an installed package, the hub at one commit.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from r2med.core.errors import MissingExtraError, UserError
from r2med.encoders import devices
from r2med.runtime.setup import Setup

T = TypeVar("T")

log = logging.getLogger("r2med")

PATIENCE = 20
"""Seconds within which the hub must answer."""

SAMPLE = 1 << 16
"""Bytes read at either end of a weight file for a folder's fingerprint."""

WEIGHTS = (".safetensors", ".bin")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
OFFLINE = "HF_HUB_OFFLINE is set"
COMMIT = re.compile(r"[0-9a-f]{40}")


IN_FOLDER = "folder"
"""What a record says of weights that were not fetched from the hub."""


class WeightsCard(BaseModel):
    """What names weights: the beginning of the card of an encoder or of a reranker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """What one types; by default the name of the file."""
    variant: str = ""
    """What stands after the colon: NAME:VARIANT."""
    repository: str = ""
    """On the hub, or an absolute folder."""
    revision: str = ""
    """A commit of it, so that a push by its authors changes no score; a branch or tag is not pinned."""
    floating: bool = False
    """True if the revision was looked up from a branch just now, as for hf:ORG/NAME. Not for card files."""
    package: str = ""
    """An installed Python package that carries the weights in its folder `model`."""


@dataclass(frozen=True)
class Weights:
    """Weights that are known by name and revision, and fetched when they are first needed."""

    name: str
    """The model's name, for messages."""
    repository: str
    revision: str
    """The hub's commit, or a fingerprint of a folder's contents."""
    folder: Path | None = None
    base: Weights | None = None
    """Of a LoRA adapter: the model that it is merged into, whose tokenizer is its own as well."""
    pinned: bool = True
    """False if a push by the model's authors would change which weights the same name means tomorrow."""

    def fetch(self) -> Path:
        """Return the local folder, downloaded if it is not there yet."""
        return self.folder or _download(self)


def find(
    card: WeightsCard,
    options: Setup,
    repository: str = "",
    role: str = "",
    revision: str = "",
    base: Weights | None = None,
) -> Weights:
    """Return which weights a card means here, without downloading them. Raises UserError if there are none.

    With a `base`, they are an adapter of it.
    """
    name, wanted = card.name, repository or card.repository
    folder = options.path_of(name)
    if folder is not None and repository and repository != card.repository:
        folder = _tower(folder, wanted, role)
    elif folder is None and card.package and (spec := importlib.util.find_spec(card.package)) and spec.origin:
        folder = Path(spec.origin).parent / "model"
    elif folder is None and Path(wanted).is_absolute():  # a folder named by path:DIR
        folder, wanted = Path(wanted), ""
    if folder is not None:
        checked = checked_adapter if base else checked_folder
        return Weights(name, wanted, folder_revision(checked(folder, name)), folder, base)
    if not wanted:
        raise UserError(f"model {name}: its card names no repository, say where it lies with --model-path {name}=DIR")
    revision = revision or card.revision
    commit = commit_of(name, wanted, revision)
    pinned = bool(COMMIT.fullmatch(revision)) and not card.floating and (base is None or base.pinned)
    if not pinned:
        _notice_unpinned(name, wanted, commit)
    return Weights(name, wanted, commit, base=base, pinned=pinned)


@cache
def _notice_unpinned(name: str, repository: str, commit: str) -> None:
    pin = f"hf:{repository}@{commit}" if name.startswith("hf-") else f'revision = "{commit}" in its card'
    log.warning("model %s: its revision is not pinned, and a push by its authors changes scores; to pin: %s", name, pin)


def is_here(card: WeightsCard, options: Setup) -> bool:
    """Tell whether a card's weights lie on this machine; nothing is fetched."""
    if options.path_of(card.name) is not None or (card.package and importlib.util.find_spec(card.package)):
        return True
    if not card.repository or importlib.util.find_spec("huggingface_hub") is None:
        return False
    # The index of a repository's files comes first and the weights last: a download that was cut off has only the one.
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
    """Return a folder that has all that a model needs."""
    if not (folder / "config.json").is_file() and not (folder / "modules.json").is_file():
        raise UserError(f"model {name}: {folder} has no config.json, is it a model saved by transformers?")
    files = [path for path in folder.rglob("*") if path.is_file()]
    if not any(path.suffix in WEIGHTS for path in files):
        other = [path.suffix for path in files if path.suffix in (".onnx", ".gguf", ".h5", ".xml")]
        only = f", only {other[0]} files, which no loader here reads" if other else ""
        raise UserError(
            f"model {name}: {folder} has no weights (*.safetensors or *.bin){only}: save the model there with "
            "save_pretrained of transformers or sentence-transformers"
        )
    if not any(path.name in TOKENIZERS for path in files):
        raise UserError(f"model {name}: {folder} has no tokenizer ({TOKENIZERS[0]} or {TOKENIZERS[1]}), copy it there")
    return folder


def checked_adapter(folder: Path, name: str) -> Path:
    """Return a folder that has all that a LoRA adapter consists of; its tokenizer is the base model's."""
    if not (folder / "adapter_config.json").is_file():
        raise UserError(f"model {name}: {folder} has no adapter_config.json, is it an adapter saved by peft?")
    if not any((folder / f"adapter_model{suffix}").is_file() for suffix in WEIGHTS):
        raise UserError(f"model {name}: {folder} has no adapter_model.safetensors or adapter_model.bin")
    return folder


FOREIGN = (".md", ".onnx", ".h5", ".msgpack", ".ot", ".gguf", ".xml")
"""Files in a model's folder that our loaders do not read."""


def folder_revision(folder: Path, ignored: tuple[str, ...] = FOREIGN) -> str:
    """Return a fingerprint of a model's folder; hidden files, and those that end in what is `ignored`, do not count.

    Small files count whole; of weights the size and both ends do. Reading 15 GB before every run would cost minutes,
    and weights that were trained further differ everywhere; a change of bytes in the middle alone goes unnoticed.
    """
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() not in ignored)
    listed = []
    for path in sorted(path for path in files if not _is_hidden(path.relative_to(folder))):
        stat = path.stat()
        listed.append((path.relative_to(folder).as_posix(), stat.st_size, stat.st_mtime_ns))
    return _fingerprint(folder, tuple(listed))


@lru_cache(maxsize=64)  # asked for by each dataset of a run
def _fingerprint(folder: Path, files: tuple[tuple[str, int, int], ...]) -> str:
    fingerprint = hashlib.sha256()
    for name, size, _ in files:
        fingerprint.update(f"{name}\0{size}\0".encode())
        path = folder / name
        with path.open("rb") as file:
            fingerprint.update(file.read(SAMPLE))
            if size > SAMPLE:
                # Tokenizers are read whole: they are small, and one changed merge in the middle changes the ids.
                file.seek(SAMPLE if path.suffix not in WEIGHTS else max(SAMPLE, size - SAMPLE))
                fingerprint.update(file.read())
    return fingerprint.hexdigest()[:40]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def is_offline() -> bool:
    """Return whether the user asked to stay off the network."""
    on = {"1", "true", "yes", "on"}
    return any(os.environ.get(name, "").lower() in on for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError("fetching a model from the hub", "hub") from None
    return huggingface_hub


@cache
def commit_of(name: str, repository: str, revision: str) -> str:
    """Return the commit that a branch or tag points to; a full commit is taken at its word.

    Asked once in a process: all parts of a run must mean the same weights.
    """
    if COMMIT.fullmatch(revision):
        return revision
    branch = revision or None
    return _from_hub(
        (name, repository, revision),
        lambda hub: str(hub.HfApi().model_info(repository, revision=branch, timeout=PATIENCE).sha),
        lambda hub: Path(hub.snapshot_download(repository, revision=branch, local_files_only=True)).name,
    )


def _download(wanted: Weights) -> Path:
    repository, commit = wanted.repository, wanted.revision

    def download(hub: Any) -> Path:
        # Asked first: without a network this fails at once, where a download would try for half a minute.
        listed = hub.HfApi().model_info(repository, revision=commit, timeout=PATIENCE).siblings or ()
        files = _needed([file.rfilename for file in listed])
        return Path(hub.snapshot_download(repository, revision=commit, allow_patterns=files))

    def cached(hub: Any) -> Path:
        folder = Path(hub.snapshot_download(repository, revision=commit, local_files_only=True))
        return (checked_adapter if wanted.base else checked_folder)(folder, wanted.name)

    return _from_hub((wanted.name, repository, commit), download, cached)


def _from_hub(wanted: tuple[str, str, str], ask: Callable[[Any], T], look: Callable[[Any], T]) -> T:
    """Return what the hub says, or where it does not answer, what its cache has. Raises UserError if neither does.

    `wanted` are the model's name, its repository and the revision, for messages.
    """
    hub = _hub()
    reason = OFFLINE
    if not is_offline():
        try:
            return ask(hub)
        except Exception as error:  # whatever the client raises, the cache may still have it
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
    """Return one small file of a repository; None if the repository is known to have no such file.

    Raises UserError if that cannot be found out: a model must not run without its prompts because a connection dropped.
    """
    hub = _hub()
    reason = OFFLINE
    if not is_offline():
        try:
            return Path(hub.hf_hub_download(repository, file, revision=commit))
        except Exception as error:
            # What says that the file is neither here nor to be had is a kind of what says that there is none.
            if isinstance(error, hub.utils.EntryNotFoundError) and not isinstance(
                error, hub.utils.LocalEntryNotFoundError
            ):
                return None
            reason = _refusal(error) or first_line(error)
    cached = hub.try_to_load_from_cache(repository, file, revision=commit)
    if isinstance(cached, str):
        return Path(cached)
    if cached is not None:  # the mark for: asked for once, and there was none
        return None
    raise _unavailable(name, f"{file} of {repository}", commit, reason)


def _needed(files: list[str]) -> list[str]:
    """Return a repository's files without the copies of the weights that are for other programs."""
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
    """Return why the hub said no, or nothing if it did not answer: then the cache may have what was asked for."""
    utils = _hub().utils
    refusals = (
        (utils.GatedRepoError, "its licence must be accepted on the hub first, then: hf auth login"),
        (utils.RepositoryNotFoundError, "no such repository, or a private one"),
        (utils.RevisionNotFoundError, "it has no such revision"),
    )
    return next((reason for kind, reason in refusals if isinstance(error, kind)), "")


def first_line(error: Exception) -> str:
    """Return the first line of what an error says, or its kind if it says nothing."""
    lines = (line.strip() for line in str(error).split("\n"))
    return next(filter(None, lines), type(error).__name__)[:160]


def _unavailable(name: str, repository: str, revision: str, reason: str) -> UserError:
    at = f" at revision {revision[:12]}" if revision else ""
    # hf:ORG/NAME has no name of its own to give a folder by; path: runs the same weights.
    instead = "run it as path:DIR" if name.startswith("hf-") else f"use --model-path {name}=DIR or R2MED_MODELS"
    return UserError(
        f"model {name}: cannot get {repository}{at} from the hub ({reason}): try again online, "
        f"or if you have its folder, {instead}"
    )


def own_code(folder: Path, kind: str = "AutoModel") -> list[str]:
    """Return the Python classes of its own that a model's files put in the place of the library's."""
    classes: list[str] = []
    for path in (folder / "config.json", folder / "0_Transformer" / "config.json"):
        if path.is_file():
            classes += [str(name) for key, name in (json_object(path).get("auto_map") or {}).items() if key == kind]
    if (folder / "modules.json").is_file():
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        types = [str(module.get("type", "")) for module in modules]
        classes += [name for name in types if not name.startswith("sentence_transformers.")]
    return classes


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, an empty one for anything else. Raises UserError if it is not JSON."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    return content if isinstance(content, dict) else {}


def not_trusted(name: str) -> UserError:
    """Return the error for a model whose code the user has not allowed."""
    return UserError(f"model {name} runs code from its repository: read it, then allow it with --trust-remote-code")


def check_trust(folder: Path, name: str, options: Setup, kind: str = "AutoModel") -> None:
    """Raise UserError before code runs that the user has not allowed, or that no revision pins."""
    code = own_code(folder, kind)
    if code and not options.trust_remote_code:
        raise not_trusted(name)
    if elsewhere := [name for name in code if "--" in name]:
        raise UserError(
            f"model {name} takes its code from another repository, {elsewhere[0].split('--')[0]}, which no revision "
            f"pins: put that code into the model's folder, name it in config.json, and use --model-path {name}=DIR"
        )


@contextmanager
def loading(name: str, folder: Path) -> Iterator[None]:
    """Load quietly, and raise UserError for whatever the libraries raise for unusable files."""
    try:
        with quiet():
            yield
    except (UserError, MemoryError):
        raise
    except ImportError as error:
        raise UserError(f"model {name}: its code needs a package that is not installed: {error}") from None
    except Exception as error:
        if devices.is_out_of_memory(error):  # for the caller: room can be made
            raise
        if "trust_remote_code" in str(error):
            raise not_trusted(name) from None
        raise UserError(f"model {name}: cannot load {folder}: {type(error).__name__}: {first_line(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars and load reports off the terminal: what matters in them is checked here."""
    from transformers.utils import logging

    library: Any = logging
    level = library.get_verbosity()
    bar = library.is_progress_bar_enabled() if hasattr(library, "is_progress_bar_enabled") else True
    library.set_verbosity_error()
    library.disable_progress_bar()
    try:
        yield
    finally:
        library.set_verbosity(level)
        if bar:
            library.enable_progress_bar()
