"""What a leaderboard filters systems by: their kind, LLM and size. The same for ours and for published ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from r2med.core.cards import parameter_count
from r2med.core.spec import ARROW
from r2med.crossencoders.reranker_cards import RERANKERS
from r2med.encoders.model_cards import MODELS
from r2med.leaderboard.published import PublishedRow
from r2med.llm.llm_cards import LLMS, LLMCard, families
from r2med.records.record import Record

AGENTS = ("search-r1", "search-o1")

CARDS: tuple[Mapping[str, Any], ...] = (MODELS, RERANKERS, LLMS)
NO_MODEL = ("bm25", "author")


def parts_of_record(record: Record) -> dict[str, Any]:
    """Return the parts of a system that was run."""
    names = {kind: ARROW.join(s.name for s in record.stages if s.stage == kind) for kind in KINDS}
    return _parts(names["retrieve"], names["expand"], names["rerank"], _llms(record))


def _llms(record: Record) -> list[str]:
    stages = [record.settings.get("expand"), *record.settings.get("rerank", ())]
    return list(dict.fromkeys(str(stage["llm"]) for stage in stages if stage and stage.get("llm")))


def judged_by_kin(record: Record) -> bool:
    """Tell whether the system asks an LLM of the family that judged the dataset's documents."""
    asked = [LLMS.get(llm) or LLMCard(name=llm, model=llm) for llm in _llms(record)]
    return any(family in record.dataset.judges for card in asked for family in families(card))


KINDS = ("expand", "retrieve", "rerank")


def parts_of_published(row: PublishedRow) -> dict[str, Any]:
    """Return the parts of a published system."""
    return _parts(row.retriever, row.expansion, row.reranker, [row.llm] if row.llm else [])


def _parts(retriever: str, expansion: str, reranker: str, llms: Sequence[str]) -> dict[str, Any]:
    return {
        "kind": _kind(retriever, expansion, reranker),
        "retriever": retriever,
        "expansion": expansion,
        "reranker": reranker,
        "llm": ", ".join(llms),
        "size": _largest([retriever, reranker, *llms]),
    }


def _kind(retriever: str, expansion: str, reranker: str) -> str:
    if expansion.startswith(AGENTS):
        return "agent"
    if expansion:
        return "expansion and reranking" if reranker else "expansion"
    return "reranking" if reranker else "fusion" if "+" in retriever else "retriever"


def _largest(names: Iterable[str]) -> float | None:
    """Return the parameters of the largest model, in billions; None where those of any are not known."""
    sizes = [max(_sizes(name), default=None) for name in names if name]
    return None if None in sizes else max(filter(None, sizes), default=0.0)


def _sizes(name: str) -> Iterable[float]:
    for word in re.split(r"[\s+→(),@]+", name):
        base = word.partition(":")[0]
        if base in NO_MODEL:
            yield 0.0
        stated = next((cards[base].parameters for cards in CARDS if base in cards), "")
        if count := parameter_count(stated or word):
            yield count / 1e9
