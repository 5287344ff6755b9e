"""Facts that the leaderboard filters systems by: kind, LLM and size. Systems run here and published ones have them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from r2med.evaluation.records.record import Record, declared_stages, llms_of
from r2med.foundation.core.needs import parameter_count
from r2med.foundation.core.spec import joined_stages
from r2med.models.crossencoders.reranker_cards import RERANKERS
from r2med.models.encoders.model_cards import MODELS
from r2med.models.llm.llm_cards import LLMS, LLMCard, families
from r2med.publication.leaderboard.published import PublishedRow

SYSTEM_KINDS = ("retriever", "expansion", "reranking", "expansion and reranking", "agent", "fusion")
"""What a system can be, in the order of the marks in charts."""

AGENTS = ("search-r1", "search-o1", "agent")

CARDS: tuple[Mapping[str, Any], ...] = (MODELS, RERANKERS, LLMS)
NO_MODEL = ("bm25", "author")


def parts_of_record(record: Record) -> dict[str, Any]:
    """Return the parts of a system that was run."""
    names = {kind: joined_stages(s.name for s in record.stages if s.stage == kind) for kind in KINDS}
    searching, llms = record.settings.get("retrieve") or {}, llms_of(record)
    inside = list(declared_stages(searching))
    settings = [*inside, *record.settings.get("rerank", ())]
    stages = [str(stage["stage"]) for stage in settings if "llm" not in stage and stage.get("stage") not in _COMPOSED]
    agent = any(str(stage["stage"]).startswith(AGENTS) and "llm" in stage for stage in inside)
    expands = [str(stage["expand"]["stage"]) for stage in inside if stage.get("expand")]
    kind = _kind(
        "agent" if agent else names["expand"] or "".join(expands[:1]),
        names["rerank"] or any(stage.get("rerank") for stage in inside),
        fused="parts" in searching,
    )
    sizes = [_size(name) for name in (*stages, *llms)]
    return _parts(kind, names["retrieve"], names["expand"], names["rerank"], llms, sizes)


_COMPOSED = ("fuse", "system", "rm3", "rocchio")
"""Stages without a model: what they consist of has its own entries."""


def judged_by_kin(record: Record) -> bool:
    """Return True if the system uses an LLM of the family that judged the dataset's documents."""
    asked = [LLMS.get(llm) or LLMCard(name=llm, model=llm) for llm in llms_of(record)]
    return any(family in record.dataset.judges for card in asked for family in families(card))


KINDS = ("expand", "retrieve", "rerank")


def parts_of_published(row: PublishedRow) -> dict[str, Any]:
    """Return the parts of a published system, with the names that its source uses."""
    llms = [row.llm] if row.llm else []
    kind = _kind(row.expansion, row.reranker, fused="+" in row.retriever)
    sizes = [_size_in_words(name) for name in (row.retriever, row.reranker, *llms) if name]
    return _parts(kind, row.retriever, row.expansion, row.reranker, llms, sizes)


def _parts(
    kind: str, retriever: str, expansion: str, reranker: str, llms: Sequence[str], sizes: Sequence[float | None]
) -> dict[str, Any]:
    known = [size for size in sizes if size is not None]
    return {
        "kind": kind,
        "retriever": retriever,
        "expansion": expansion,
        "reranker": reranker,
        "llm": ", ".join(llms),
        "size": max(known, default=0.0) if len(known) == len(sizes) else None,
    }


def _kind(expansion: str, reranker: str | bool, *, fused: bool) -> str:
    if expansion.startswith(AGENTS):
        return "agent"
    if expansion:
        return "expansion and reranking" if reranker else "expansion"
    return "reranking" if reranker else "fusion" if fused else "retriever"


def _size(name: str) -> float | None:
    """Return the parameters of a model in billions, from its card or its name; None if they are not known."""
    base = name.partition(":")[0]
    if base in NO_MODEL:
        return 0.0
    stated = next((cards[base].parameters for cards in CARDS if base in cards), "")
    count = parameter_count(stated or name)
    return count / 1e9 if count else None


def _size_in_words(name: str) -> float | None:
    """Return the parameters of the largest model that a published name mentions."""
    sizes = [size for word in re.split(r"[\s+(),]+", name) if (size := _size(word)) is not None]
    return max(sizes, default=None)
