"""One copy of a cross-encoder: load and check it, and score pairs of token ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_never

import numpy as np
import torch

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.crossencoders.reranker_cards import RerankerCard, WeightsLoader
from r2med.models.encoders import model_loading
from r2med.models.encoders.devices import dtype_setting
from r2med.models.encoders.encoder import Vectors
from r2med.models.encoders.lora import merge
from r2med.models.encoders.transformer import Forward, Matrix, pool

MODEL_CLASSES: Mapping[WeightsLoader, str] = {
    "classifier": "AutoModelForSequenceClassification",
    "yes-no": "AutoModelForCausalLM",
    "t5": "AutoModelForSeq2SeqLM",
}

SCORE_TOKEN = "<extra_id_10>"
"""Token whose logit RankT5 was trained to use as the score."""


class Classifier:
    """A model such as BERT whose head reads the whole pair."""

    def __init__(self, model: Any, device: str, column: int) -> None:
        self.model = model
        self.device = device
        self._column = column

    def __call__(self, ids: Matrix, lengths: Matrix, types: Matrix | None) -> Vectors:
        """Return a score for each row of right-padded ids."""
        mask = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask}
        if types is not None:
            inputs["token_type_ids"] = types
        tensors = {name: torch.from_numpy(matrix).to(self.device) for name, matrix in inputs.items()}
        with torch.inference_mode():
            scores: Vectors = self.model(**tensors).logits[:, self._column, None].float().cpu().numpy()
            return scores


class LastToken:
    """A decoder whose score is a product with the state of the last token.

    The score is computed from the state and not from the library's logits. The library finds the last token by the id
    of the padding, which may also occur in the text, and a language model would compute its whole vocabulary.
    """

    def __init__(self, model: Any, device: str, head: Any, bias: float) -> None:
        self.model = model
        self.device = device
        self._forward = Forward(model.base_model, device, bidirectional=False)
        self._head = head.detach().float().to(device)
        self._bias = bias

    def __call__(self, ids: Matrix, lengths: Matrix, types: Matrix | None) -> Vectors:
        """Return a score for each row of right-padded ids."""
        with torch.inference_mode():
            hidden = self._forward.model(**self._forward.inputs(ids, lengths)).last_hidden_state
            scores: Vectors = (pool(hidden, lengths, "last") @ self._head + self._bias)[:, None].cpu().numpy()
            return scores


class FirstDecoderStep:
    """An encoder-decoder such as RankT5, whose score is the logit of one token at the first step of the decoder."""

    def __init__(self, model: Any, device: str, token: int) -> None:
        self.model = model
        self.device = device
        self._token = token

    def __call__(self, ids: Matrix, lengths: Matrix, types: Matrix | None) -> Vectors:
        """Return a score for each row of right-padded ids."""
        mask = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
        start = np.full((len(ids), 1), self.model.config.decoder_start_token_id, dtype=np.int64)
        inputs = {"input_ids": ids.astype(np.int64), "attention_mask": mask, "decoder_input_ids": start}
        tensors = {name: torch.from_numpy(matrix).to(self.device) for name, matrix in inputs.items()}
        with torch.inference_mode():
            scores: Vectors = self.model(**tensors).logits[:, 0, self._token, None].float().cpu().numpy()
            return scores


PairModel = Classifier | LastToken | FirstDecoderStep


def with_head(model: Any, tokenizer: Any, card: RerankerCard, device: str) -> PairModel:
    """Return the scoring model on a device, with the right kind of head."""
    model = model.to(device)
    match weights_loader(card):
        case "yes-no":
            yes, no = (_only_token(tokenizer, word, card) for word in ("yes", "no"))
            rows = model.get_output_embeddings().weight
            return LastToken(model, device, rows[yes].detach().float() - rows[no].detach().float(), 0.0)
        case "t5":
            return FirstDecoderStep(model, device, _only_token(tokenizer, SCORE_TOKEN, card))
        case "classifier":
            return _classifier(model, card, device)
        case other:
            assert_never(other)


def weights_loader(card: RerankerCard) -> WeightsLoader:
    """Return the loader of a card whose weights run in this process."""
    for loader in MODEL_CLASSES:
        if loader == card.loader:
            return loader
    raise ValueError(f"reranker {card.name}: the loader {card.loader} has no weights")


def _classifier(model: Any, card: RerankerCard, device: str) -> PairModel:
    column = _column(card, int(model.config.num_labels))
    head = getattr(model, "score", None)
    if isinstance(head, torch.nn.Linear):  # All decoders of the library use this name for their head.
        return LastToken(model, device, head.weight[column], 0.0 if head.bias is None else float(head.bias[column]))
    return Classifier(model, device, column)


def positions(model: Any) -> int:
    """Return the number of positions of a model, or 0 if it does not say."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            # RoBERTa and related models count from after the padding's own position.
            return int(module.num_embeddings) - (0 if module.padding_idx is None else module.padding_idx + 1)
    return int(getattr(model.config, "max_position_embeddings", 0) or 0)


def load_tokenizer(folder: Path, card: RerankerCard, setup: Setup) -> Any:
    """Return the tokenizer of a folder."""
    from transformers import AutoTokenizer

    settings = _settings(folder, card, setup)
    with model_loading.loading(card.name, folder):
        return AutoTokenizer.from_pretrained(str(folder), **settings)


def load_model(folder: Path, adapter: Path | None, card: RerankerCard, setup: Setup, dtype: str) -> Any:
    """Return the model of a folder with its head and with the adapter merged.

    Raises UserError if a weight is missing.
    """
    import transformers

    kind = MODEL_CLASSES[weights_loader(card)]
    model_loading.check_trust(folder, card.name, setup, kind)
    # An adapter is merged before the weights are rounded to bfloat16, which would lose most of its changes.
    wide = "float32" if adapter is not None and dtype == "bfloat16" else dtype
    settings = _settings(folder, card, setup) | dtype_setting(wide)
    if adapter is not None:
        settings |= _head_setting(settings, card)
    with model_loading.loading(card.name, folder):
        load = getattr(transformers, kind).from_pretrained
        model, info = load(str(folder), output_loading_info=True, **settings)
    brought: set[str] = set()
    if adapter is not None:
        with model_loading.loading(card.name, adapter):
            brought = merge(model, adapter, card.name)
    missing = sorted(set(info["missing_keys"]) - brought)
    if missing:  # The library would fill them with random numbers.
        raise UserError(
            f"reranker {card.name}: {adapter or folder} lacks {len(missing)} weights of {type(model).__name__}, "
            f"e.g. {missing[0]}; it may not be a cross-encoder"
        )
    return (model if wide == dtype else model.to(getattr(torch, dtype))).eval()


def _settings(folder: Path, card: RerankerCard, setup: Setup) -> dict[str, Any]:
    settings: dict[str, Any] = {"local_files_only": True, "trust_remote_code": setup.trust_remote_code}
    return settings | _configuration(folder, card)


def _configuration(folder: Path, card: RerankerCard) -> dict[str, Any]:
    """Return the configuration if its file does not name the architecture, as in old models.

    Otherwise the library would guess the architecture from the folder's path.
    """
    from transformers import AutoConfig

    with model_loading.loading(card.name, folder):
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if "model_type" in content or not card.architecture:
            return {}
        return {"config": AutoConfig.for_model(card.architecture, **content)}


def _head_setting(settings: dict[str, Any], card: RerankerCard) -> dict[str, Any]:
    """Return the number of logits of an adapter's head. The base model's own configuration says two."""
    labels = 2 if card.logit == "second" else 1
    if config := settings.get("config"):
        config.num_labels = labels
        return {"config": config}
    return {"num_labels": labels}


def _column(card: RerankerCard, labels: int) -> int:
    """Return the column of a classifier's logits that is the score."""
    wanted = {"only": 1, "second": 2}.get(card.logit, labels)
    if labels != wanted or labels not in (1, 2):
        expected = {"only": "one", "second": "two"}.get(card.logit, "one or two")
        raise UserError(f"reranker {card.name}: its model returns {labels} logits for a pair instead of {expected}")
    return labels - 1


def _only_token(tokenizer: Any, word: str, card: RerankerCard) -> int:
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        raise UserError(
            f"reranker {card.name}: {word!r} has {len(ids)} tokens in its tokenizer; it must have exactly one"
        )
    return int(ids[0])
