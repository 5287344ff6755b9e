"""From a folder to a model that scores: configuration, weights, the adapter, the tokenizer; all checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from r2med.crossencoders.lora import merge
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.encoders import weights
from r2med.encoders.devices import dtype_setting
from r2med.errors import UserError
from r2med.setup import Setup

CLASSES = {"classifier": "AutoModelForSequenceClassification", "yes-no": "AutoModelForCausalLM"}


def load_tokenizer(folder: Path, card: RerankerCard, options: Setup) -> Any:
    """Return the tokenizer of a folder."""
    from transformers import AutoTokenizer

    settings = _settings(folder, card, options)
    with weights.loading(card.name, folder):
        return AutoTokenizer.from_pretrained(str(folder), **settings)


def load_model(folder: Path, adapter: Path | None, card: RerankerCard, options: Setup, dtype: str) -> Any:
    """Return the model of a folder with its head, the adapter merged; no weight of it is left to chance."""
    import transformers

    kind = CLASSES[card.loader]
    weights.check_trust(folder, card.name, options, kind)
    settings = _settings(folder, card, options) | dtype_setting(dtype)
    if adapter is not None:
        settings |= _head(settings, card)
    with weights.loading(card.name, folder):
        load = getattr(transformers, kind).from_pretrained
        model, info = load(str(folder), output_loading_info=True, **settings)
    brought: set[str] = set()
    if adapter is not None:
        with weights.loading(card.name, adapter):
            brought = merge(model, adapter, card.name)
    missing = sorted(set(info["missing_keys"]) - brought)
    if missing:  # the library would fill them with random numbers
        raise UserError(
            f"reranker {card.name}: {adapter or folder} lacks {len(missing)} weights of {type(model).__name__}, "
            f"e.g. {missing[0]}: is it a cross-encoder?"
        )
    return model.eval()


def column(card: RerankerCard, labels: int) -> int:
    """Return which of a classifier's logits is the score."""
    wanted = {"only": 1, "second": 2}.get(card.logit, labels)
    if labels != wanted or labels not in (1, 2):
        expected = {"only": "one", "second": "two"}.get(card.logit, "one or two")
        raise UserError(f"reranker {card.name}: its model gives {labels} logits for a pair instead of {expected}")
    return labels - 1


def _settings(folder: Path, card: RerankerCard, options: Setup) -> dict[str, Any]:
    settings: dict[str, Any] = {"local_files_only": True, "trust_remote_code": options.trust_remote_code}
    return settings | _configuration(folder, card)


def _configuration(folder: Path, card: RerankerCard) -> dict[str, Any]:
    """Return the configuration where its file does not name the architecture, as those of old models.

    The library would guess it from the folder's path.
    """
    from transformers import AutoConfig

    with weights.loading(card.name, folder):
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if "model_type" in content or not card.architecture:
            return {}
        return {"config": AutoConfig.for_model(card.architecture, **content)}


def _head(settings: dict[str, Any], card: RerankerCard) -> dict[str, Any]:
    """Return how many logits the head that an adapter brings has: a base model's own configuration says two."""
    labels = 2 if card.logit == "second" else 1
    if config := settings.get("config"):
        config.num_labels = labels
        return {"config": config}
    return {"num_labels": labels}
