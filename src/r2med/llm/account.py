"""What answers took: the same on every run, asked now or read from the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from r2med.cost import Cost
from r2med.llm.contracts import Failure, Generation, RawAnswer
from r2med.llm.llm_cards import LLMCard
from r2med.llm.price import cost_usd

Answer = Generation | RawAnswer | Failure

SHORT = 200
"""Letters of a reason that are shown; servers have been seen to answer with whole pages."""


def usage_of(answers: Sequence[Answer], card: LLMCard, cut: int) -> dict[str, float]:
    """Return requests, tokens, cost and latency. (What this process paid is the chat model's own `usage()`.)"""
    asked = [answer for answer in answers if not (isinstance(answer, Failure) and answer.attempts == 0)]
    prompt = sum(answer.prompt_tokens for answer in asked)
    completion = sum(answer.completion_tokens for answer in asked)
    seconds = sorted(answer.seconds for answer in asked if not isinstance(answer, Failure))
    found: dict[str, float] = {
        "requests": len(asked),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cost_usd": cost_usd(card, prompt, completion),
        "seconds": sum(answer.seconds for answer in asked),
        "latency_median": _quantile(seconds, 0.5),
        "latency_p95": _quantile(seconds, 0.95),
        "prompts_cut": cut,
    }
    # Nobody pays a model that runs in this process; of an endpoint's, no price means that it is not known.
    if asked and card.backend == "openai" and "price" not in card.model_fields_set:
        found["unpriced"] = len(asked)
    return found


def answers_cost(answers: Sequence[Answer], card: LLMCard, cut: int) -> Cost:
    """Return what answers took; `cut` are prompts that something was left out of."""
    usage = usage_of(answers, card, cut)
    return Cost(
        seconds=usage["seconds"],
        calls=int(usage["requests"]),
        prompt_tokens=int(usage["prompt_tokens"]),
        completion_tokens=int(usage["completion_tokens"]),
        cut=cut,
        dollars=usage["cost_usd"],
        unpriced=int(usage.get("unpriced", 0)),
        latencies=tuple(answer.seconds for answer in answers if not isinstance(answer, Failure)),
    )


def told_failures(what: str, answers: Sequence[Answer]) -> list[str]:
    """Return what to tell of answers that failed: one line with their kinds, and the first reason of each kind."""
    kinds = failure_kinds(answers)
    if not kinds:
        return []
    return [f"{what} ({listed_kinds(kinds)})", *(f"{kind}: {reason}" for kind, reason in reasons(answers).items())]


def listed_kinds(kinds: Mapping[str, int]) -> str:
    """Return how many failures there are of each kind, in words."""
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def failure_kinds(answers: Sequence[Answer]) -> dict[str, int]:
    """Return how many answers failed, by kind."""
    return dict(sorted(Counter(answer.kind for answer in answers if isinstance(answer, Failure)).items()))


def reasons(answers: Sequence[Answer]) -> dict[str, str]:
    """Return why answers failed: for each kind what the first of them said, on one line."""
    found: dict[str, str] = {}
    for answer in answers:
        if isinstance(answer, Failure):
            found.setdefault(answer.kind, " ".join(answer.message.split()))
    return {kind: why if len(why) <= SHORT else f"{why[: SHORT - 1].rstrip()}…" for kind, why in sorted(found.items())}


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that this share of all does not exceed; 0 where there is none."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0.0
