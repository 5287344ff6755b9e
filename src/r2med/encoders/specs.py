"""Models without a card: `hf:ORG/NAME`, `path:DIR` and `py:MODULE:NAME`, and the card that follows from each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from r2med.encoders import weights
from r2med.encoders.model_cards import ModelCard, Side, model_card, models
from r2med.errors import UserError

CONFIG = "config_sentence_transformers.json"
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
"""What models call their prompt for documents, in the order in which sentence-transformers looks for it."""

_PYTHON = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def card_of(spec: str) -> ModelCard:
    """Return the card of anything that a user may name as a model."""
    if spec in models():
        return models()[spec]
    if spec.startswith(("hf:", "path:")):
        return card_for(spec)
    if spec.startswith("py:") or (_PYTHON.fullmatch(spec) and spec.partition(":")[0] not in models()):
        return custom_card(spec.removeprefix("py:"))
    return model_card(spec)


def card_for(spec: str) -> ModelCard:
    """Return a card for any sentence-transformers model, with its own prompts and similarity.

    `max_tokens` 0 means the model's own limit.
    """
    kind, _, place = spec.partition(":")
    if kind == "path":
        folder = Path(place).expanduser().absolute()
        if not folder.is_dir():
            raise UserError(f"{spec}: there is no such folder")
        weights.checked_folder(folder, spec)
        config, repository, revision = _read(folder / CONFIG), str(folder), ""
    else:
        repository, _, asked = place.partition("@")
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
            raise UserError(f"{spec}: a model on the hub is written hf:ORG/NAME or hf:ORG/NAME@REVISION")
        config, revision = _from_hub(repository, asked)
    prompts = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name") or "") or ""
    query = prompts.get("query", default)
    document = next((prompts[name] for name in DOCUMENT_PROMPTS if name in prompts), default)
    return ModelCard(
        name=safe_name(f"{kind}-{folder.name if kind == 'path' else repository}"),
        repository=repository,
        revision=revision,
        loader="sentence-transformers",
        similarity="dot" if config.get("similarity_fn_name") == "dot" else "cosine",
        query=Side(prefix=query or "", max_tokens=0),
        document=Side(prefix=document or "", max_tokens=0),
    )


def custom_card(place: str) -> ModelCard:
    """Return a card for a Python object MODULE:NAME."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise UserError(f"py:{place}: a Python model is written py:MODULE:NAME")
    nothing = Side(max_tokens=0)
    return ModelCard(name=safe_name(f"py-{place}"), repository=place, loader="custom", query=nothing, document=nothing)


def safe_name(text: str) -> str:
    """Return a name that may become part of a file name."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.") or "model"


def _from_hub(repository: str, revision: str) -> tuple[dict[str, Any], str]:
    name = safe_name(f"hf-{repository}")
    commit = weights.commit_of(name, repository, revision)
    found = weights.small_file(repository, commit, CONFIG)
    return (_read(found) if found else {}), commit


def _read(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{file}: not JSON: {error}") from None
    return content if isinstance(content, dict) else {}
