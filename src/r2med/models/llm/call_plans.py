"""Estimate the LLM calls of a stage before any prompt is written: time, price, and memory at the server."""

from __future__ import annotations

from dataclasses import replace

from r2med.foundation.core.plan import Plan, PlannedLLM, gpu_memory
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.costs import dollars, is_priced, typical_answer_tokens
from r2med.models.llm.journal import answer_seconds
from r2med.models.llm.llm_cards import LLMCard

WRITTEN = 50
"""Estimated number of tokens that an LLM writes in a second."""

INSTRUCTION_TOKENS = 500
"""Approximate number of tokens of a query and of the instructions around it."""


def asking_seconds(llm: PlannedLLM, plan: Plan, runtime: Runtime) -> tuple[float, int]:
    """Return the estimated seconds of a plan's calls to an LLM, and the number of earlier answers that this uses.

    With no earlier answers, it assumes `WRITTEN` tokens a second.
    """
    calls = plan.calls or 0
    known = answer_seconds(runtime.store, llm.model)
    seconds = calls * sum(known) / len(known) if known else (plan.completion_tokens or 0) / WRITTEN
    is_remote = (runtime.setup.llm_backend or ("openai" if runtime.setup.base_url else llm.backend)) == "openai"
    return seconds / (min(runtime.setup.concurrency, max(calls, 1)) if is_remote else 1), len(known)


def with_calls(plan: Plan, card: LLMCard, calls: int | None, shown_tokens: int, runtime: Runtime) -> Plan:
    """Return a plan with estimates for its LLM calls. `shown_tokens` are those of all passages in all prompts.

    Without a number of calls, tokens, time and price are unknown too.
    """
    in_process = card.backend == "local" and not runtime.setup.base_url
    provided = card.backend != "openai" or is_priced(card)
    plan = replace(
        plan,
        llm=card,
        memory=gpu_memory(card.parameters) if in_process else 0.0,
        served=0.0 if provided else gpu_memory(card.parameters),
    )
    if calls is None:
        unknown = dict.fromkeys(("calls", "prompt_tokens", "completion_tokens", "dollars", "dollars_at_most"))
        return replace(plan, seconds=None, **unknown)  # type: ignore[arg-type]
    prompt, limit = shown_tokens + calls * INSTRUCTION_TOKENS, min(card.max_tokens, card.context_length)
    written = calls * min(typical_answer_tokens(card), card.max_tokens)
    plan = replace(
        plan,
        work=f"asks an LLM about {calls:,} times",
        calls=calls,
        prompt_tokens=prompt,
        completion_tokens=written,
        dollars=dollars(card, prompt, written) if is_priced(card) else None,
        dollars_at_most=dollars(card, prompt, calls * limit) if is_priced(card) else None,
    )
    return replace(plan, seconds=asking_seconds(card, plan, runtime)[0])
