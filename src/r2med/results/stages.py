"""What each stage of a system took, and all of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from r2med.cost import Cost
from r2med.results.record import StageFacts
from r2med.system import Outcome, System


def stage_facts(system: System, outcome: Outcome) -> tuple[StageFacts, ...]:
    """Return the facts of every stage, in the order in which they ran."""
    found = []
    if system.expander is not None:
        expansion = outcome.expansion
        found.append(
            StageFacts(
                stage="expansion",
                name=system.expander.name,
                seconds=expansion.cost.seconds,
                failures=expansion.failures,
                failure_kinds=dict(expansion.failure_kinds),
                llm={**_llm(expansion.cost), **expansion.counts} if expansion.cost.calls or expansion.failures else {},
            )
        )
    searched = outcome.searched
    both = searched.prepared + searched.cost
    usage = {"texts": both.texts, "tokens": both.tokens, "truncated": both.cut, "cost_usd": both.dollars}
    usage = {name: float(amount) for name, amount in usage.items() if both.texts}
    found.append(StageFacts(stage="search", name=str(system.retriever), seconds=searched.cost.seconds, usage=usage))
    for reranker, reranked in zip(system.rerankers, outcome.reranked, strict=True):
        found.append(
            StageFacts(
                stage="rerank",
                name=reranker.name,
                seconds=reranked.cost.seconds,
                failures=reranked.failures,
                failure_kinds=reranked.failure_kinds,
                repairs=reranked.repairs,
                llm=_llm(reranked.cost) if reranked.cost.calls or reranked.failures else {},
                usage=_usage(reranked.cost) if reranked.cost.texts else {},
            )
        )
    return tuple(found)


def _llm(cost: Cost) -> dict[str, float]:
    return {
        "requests": cost.calls,
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
        "cost_usd": cost.dollars,
        "seconds": cost.seconds,
        "latency_median": cost.latency(0.5),
        "latency_p95": cost.latency(0.95),
        "prompts_cut": cost.cut,
        **({"unpriced": cost.unpriced} if cost.unpriced else {}),
    }


def _usage(cost: Cost) -> dict[str, float]:
    return {"pairs": float(cost.texts), "tokens": float(cost.tokens), "truncated": float(cost.cut)}


def total(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sum of several accounts; latencies do not add up, so of several none is kept."""
    accounts = [part for part in parts if part]
    if len(accounts) == 1:
        return dict(accounts[0])
    found: dict[str, float] = {}
    for account in accounts:
        for name, amount in account.items():
            if not name.startswith("latency"):
                found[name] = found.get(name, 0.0) + amount
    return found


def seeds(settings: Mapping[str, Any]) -> dict[str, int]:
    """Return every seed that a system's settings name, by where it stands in them."""
    found: dict[str, int] = {}
    stages = {"llm": settings.get("expansion") or {}}
    stages |= {f"rerank {number}": stage for number, stage in enumerate(settings.get("rerank") or (), 1)}
    for name, stage in stages.items():
        sampling = stage.get("sampling") or {}
        if sampling.get("seed") is not None:
            found[name if name == "llm" else f"{name} llm"] = sampling["seed"]
        if isinstance(stage.get("seed"), int):
            found[name if name != "llm" else "expansion"] = stage["seed"]
    return found
