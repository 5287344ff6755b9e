"""Tiny late interaction and learned sparse models with random weights, saved as sentence-transformers saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from support import tiny_models


def moderncolbert(folder: Path) -> Path:
    """Save a ModernBERT with a projection of tokens, markers, filled-up queries and words that do not count."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Dense, Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    tokenizer = tiny_models._word_piece()
    config = transformers.ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
        local_attention=8,
        initializer_range=0.3,
        pad_token_id=tokenizer.pad_token_id,
        cls_token_id=tokenizer.cls_token_id,
        sep_token_id=tokenizer.sep_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
    )
    torch.manual_seed(3)
    base = folder.with_name(f"{folder.name}-base")
    transformers.ModernBertModel(config).save_pretrained(base)
    tokenizer.save_pretrained(base)
    expansion: Any = {"strategy": "fixed", "attend": False, "length": 12}
    modules = [
        Transformer(str(base), document_length=40, query_expansion=expansion),
        Dense(32, 8, bias=False, activation_function=torch.nn.Identity(), module_input_name="token_embeddings"),
        MultiVectorMask(skiplist_words=[",", "."]),
        Normalize(module_input_name="token_embeddings"),
    ]
    model = MultiVectorEncoder(modules=modules, prompts={"query": "[Q] ", "document": "[D] "}, device="cpu")
    model.save(str(folder))
    return folder


def splade(folder: Path, positions: int = 64) -> Path:
    """Save a BERT whose language modelling head gives weights of terms."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    base = tiny_models._save(
        folder.with_name(f"{folder.name}-base"),
        tiny_models._config(transformers.BertConfig, tiny_models._word_piece(), max_position_embeddings=positions),  # type: ignore[arg-type]
        tiny_models._word_piece(),
        transformers.AutoModelForMaskedLM,
    )
    model = SparseEncoder(
        modules=[Transformer(str(base), transformer_task="fill-mask"), SpladePooling("max")], device="cpu"
    )
    model.save(str(folder))
    return folder
