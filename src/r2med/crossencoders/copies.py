"""One copy of a cross-encoder on one device: token ids in, one score per pair out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from r2med.crossencoders.loading import column
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.encoders.encoder import Vectors
from r2med.encoders.forward import Forward, Matrix
from r2med.errors import UserError


class Classifier:
    """A model whose head reads the whole pair, as BERT's."""

    def __init__(self, model: Any, device: str, place: int) -> None:
        self.model, self.device, self._column = model, device, place

    def __call__(self, ids: Matrix, lengths: Matrix, types: Matrix | None) -> Vectors:
        """Return a score for each row of right-padded ids."""
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(ids).to(self.device)}
        inputs["attention_mask"] = torch.from_numpy((np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)).to(
            self.device
        )
        if types is not None:
            inputs["token_type_ids"] = torch.from_numpy(types).to(self.device)
        with torch.inference_mode():
            found: Vectors = self.model(**inputs).logits[:, self._column, None].float().cpu().numpy()
            return found


class LastToken:
    """A decoder whose score is a product with the last token's state.

    Taken here from the state and not from the library's logits: it looks for the last token by the padding's id, which
    may also be a token of the text, and a language model would compute its whole vocabulary.
    """

    def __init__(self, model: Any, device: str, head: Any, bias: float) -> None:
        self.model, self.device = model, device
        self._forward = Forward(model.base_model, device, bidirectional=False)
        self._head, self._bias = head.detach().float().to(device), bias

    def __call__(self, ids: Matrix, lengths: Matrix, types: Matrix | None) -> Vectors:
        """Return a score for each row of right-padded ids."""
        with torch.inference_mode():
            hidden, sizes = self._forward(ids, lengths)
            last = hidden[torch.arange(len(ids), device=self.device), sizes - 1]
            found: Vectors = (last.float() @ self._head + self._bias)[:, None].cpu().numpy()
            return found


def scoring(model: Any, tokenizer: Any, card: RerankerCard, device: str) -> Classifier | LastToken:
    """Return what scores with a model, by its kind of head."""
    model = model.to(device)
    if card.loader == "yes-no":
        yes, no = (_only_token(tokenizer, word, card) for word in ("yes", "no"))
        head = model.get_output_embeddings().weight
        return LastToken(model, device, head[yes].detach().float() - head[no].detach().float(), 0.0)
    place = column(card, int(model.config.num_labels))
    head = getattr(model, "score", None)
    if isinstance(head, torch.nn.Linear):  # what all of the library's decoders call theirs
        return LastToken(model, device, head.weight[place], 0.0 if head.bias is None else float(head.bias[place]))
    return Classifier(model, device, place)


def positions(model: Any) -> int:
    """Return how many tokens a model has positions for; 0 if it does not say."""
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            # RoBERTa and its kin count from behind the padding's own position.
            return int(module.num_embeddings) - (0 if module.padding_idx is None else module.padding_idx + 1)
    return int(getattr(model.config, "max_position_embeddings", 0) or 0)


def _only_token(tokenizer: Any, word: str, card: RerankerCard) -> int:
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    if len(ids) != 1:
        raise UserError(f"reranker {card.name}: {word!r} is {len(ids)} tokens of its model, so it has no one logit")
    return int(ids[0])
