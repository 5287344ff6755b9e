"""From what is typed to an LLM reranker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from r2med.errors import UserError, nearest
from r2med.llm.contracts import ChatModel
from r2med.llm.llm_cards import LLMCard
from r2med.rerank.contracts import Reranker
from r2med.rerank.llm.groupwise import GroupwiseSettings, by_groups
from r2med.rerank.llm.listwise import ListwiseSettings, by_windows
from r2med.rerank.llm.pointwise import PointwiseSettings, by_points
from r2med.rerank.llm.reranker import LLMReranker, Method
from r2med.spec import Call

_WAYS: Mapping[str, Method] = {
    "listwise": Method(ListwiseSettings, by_windows),
    "groupwise": Method(GroupwiseSettings, by_groups),
    "pointwise": Method(PointwiseSettings, by_points),
}
METHODS = tuple(_WAYS)


def build(call: Call, llm: ChatModel, card: LLMCard, prompts: Path | None, depth: int) -> Reranker:
    """Return the reranker of a call such as `groupwise(o3-mini, shuffles=3)`; `llm` and `card` are the LLM it names."""
    if call.name not in _WAYS:
        raise UserError(f"no LLM reranker {call.name!r}{nearest(call.name, METHODS)}: {', '.join(METHODS)}")
    if len(call.arguments) != 1:
        raise UserError(f"{call.name} needs the name of an LLM, such as {call.name}(o3-mini)")
    if depth < 1:
        raise UserError(f"{call.name} must look at one candidate or more, not at {depth}")
    method = _WAYS[call.name]
    settings = method.settings(**call.typed(method.settings.kinds()))
    return LLMReranker(call.name, method, llm, card, settings, depth, prompts)
