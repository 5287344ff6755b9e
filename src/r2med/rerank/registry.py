"""Rerankers by what is typed, for `system/assembly.py`."""

from __future__ import annotations

from dataclasses import replace

from r2med import stages
from r2med.rerank.reranking import Reranker
from r2med.setup import Setup
from r2med.spec import Call
from r2med.store import Store

BY_LLM = tuple(stages.TABLE["rerank"])


def is_reranker(stage: list[Call]) -> bool:
    """Tell whether a stage names a reranker; hf:, path: and py: may be retrievers as well: where they stand decides."""
    return len(stage) == 1 and stages.kind_of(stage[0].name) == "rerank"


def build(call: Call, setup: Setup, depth: int, store: Store) -> Reranker:
    """Return the reranker of a call; `depth` is for one that does not say how deep it looks."""
    deep = replace(call, depth=depth if call.depth is None else call.depth)
    reranker: Reranker = stages.stage(deep, "rerank").open(setup)
    return reranker
