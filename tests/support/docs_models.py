"""Models with random weights, under the names of those that the docs would have a reader download."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from support import tiny_late_models, tiny_models, tiny_rerankers

LONG_BERT = partial(tiny_models.bert, positions=512, layers=1)
MODELS: dict[str, Callable[[Path], Path]] = {
    "bge": LONG_BERT,
    "minilm": LONG_BERT,
    "e5": partial(tiny_models.mistral, positions=2048, layers=1),
    "nv": tiny_models.own_encode,
    "diver": partial(tiny_models.mistral, positions=8192, layers=1),
    "medcpt/query": LONG_BERT,
    "medcpt/document": LONG_BERT,
    "bge-reranker": partial(tiny_rerankers.xlm_roberta, positions=2048, layers=1),
    "monobert": partial(tiny_rerankers.bert, positions=512, layers=1),
    "reason-moderncolbert": tiny_late_models.moderncolbert,
    "splade-v3": partial(tiny_late_models.splade, positions=512),
}


def write_models(folder: Path) -> None:
    """Write every model into a folder of its name."""
    for name, write in MODELS.items():
        write(folder / name)
