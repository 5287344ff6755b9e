"""Estimate the LLM calls of a stage before any prompt is written: time, price, and memory at the server."""

from __future__ import annotations

from dataclasses import replace

from r2med.foundation.core.stage_plan import StagePlan, gpu_memory
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.costs import CallEstimate, dollars, is_priced, typical_answer_tokens
from r2med.models.llm.journal import answer_seconds
from r2med.models.llm.llm_cards import LLMCard

WRITTEN = 50
"""Estimated number of tokens that an LLM writes in a second."""

INSTRUCTION_TOKENS = 500
"""Approximate number of tokens of a query and of the instructions around it."""


def asking_seconds(card: LLMCard, about: CallEstimate, runtime: Runtime) -> tuple[float, int]:
    """Return the estimated seconds of the LLM calls, and the number of earlier answers that the estimate uses.

    With no earlier answers, it assumes `WRITTEN` tokens a second.
    """
    known = answer_seconds(runtime.store, card.model)
    seconds = about.calls * sum(known) / len(known) if known else about.completion_tokens / WRITTEN
    is_remote = (runtime.setup.llm_backend or ("openai" if runtime.setup.base_url else card.backend)) == "openai"
    return seconds / (min(runtime.setup.concurrency, max(about.calls, 1)) if is_remote else 1), len(known)


def with_calls(plan: StagePlan, card: LLMCard, calls: int | None, shown_tokens: int, runtime: Runtime) -> StagePlan:
    """Return a plan with estimates for its LLM calls. `shown_tokens` are those of all passages in all prompts.

    Without a number of calls, time and price are unknown too.
    """
    in_process = card.backend == "local" and not runtime.setup.base_url
    provided = card.backend != "openai" or is_priced(card)
    plan = replace(
        plan,
        memory=gpu_memory(card.parameters) if in_process else 0.0,
        served=0.0 if provided else gpu_memory(card.parameters),
    )
    if calls is None:
        return replace(plan, calls=None, seconds=None, dollars=None)
    prompt = shown_tokens + calls * INSTRUCTION_TOKENS
    completion = calls * min(typical_answer_tokens(card), card.max_tokens)
    price = dollars(card, prompt, completion)
    about = CallEstimate(calls, prompt, completion, price, price)
    seconds, _ = asking_seconds(card, about, runtime)
    work = f"asks an LLM about {calls:,} times"
    return replace(plan, work=work, calls=calls, seconds=seconds, dollars=price if is_priced(card) else None)
