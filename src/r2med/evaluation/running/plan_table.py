"""The table of a plan: GPU memory, LLM calls, tokens, hours, dollars and downloads of each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from r2med.foundation.core.plan import Plan
from r2med.foundation.pages.cells import Column, Value, shown_dollars
from r2med.foundation.pages.page import Table
from r2med.models.encoders.model_estimates import gpu_speed_up
from r2med.systems.system import System

GIGABYTE = 1e9

NOTE = (
    "Rough estimates for each system alone. Memory is that of weights in half precision, and a fifth more. "
    "Downloads are weights. Systems with the same retriever share its weights and vectors. "
    "Hours are those of this machine's {device}"
)


def plan_table(
    planned: Sequence[tuple[System, Sequence[Plan]]], device: str, runs: Mapping[str, str] | None = None
) -> Table:
    """Return a row for each system. A cell without a number says why.

    `runs` says for each system how often it would be run. Calls, tokens, hours and dollars are those of all runs.
    """
    columns = (
        Column("system"),
        *([Column("runs")] if runs else []),
        Column("GPU memory"),
        Column("LLM calls", "integer"),
        Column("tokens"),
        Column("hours", "number", 1),
        Column("dollars", "dollars"),
        Column("downloads"),
    )
    rows = [
        (
            system.name,
            *([runs[system.name]] if runs else []),
            *(cell(stages) for cell in (_memory, _calls, _tokens, _hours, _dollars, _downloads)),
        )
        for system, stages in planned
    ]
    faster = f"; a GPU encodes about {gpu_speed_up():,.0f} times as fast." if device == "cpu" else "."
    return Table(columns, rows, "What each system needs", NOTE.format(device=device) + faster)


def _memory(stages: Sequence[Plan]) -> str:
    """Return the memory of the largest model here, because models run one after the other, and that of servers."""
    unknown = [f"unknown size of {each.name}" for each in stages if each.memory is None or each.served is None]
    here = max((each.memory or 0.0 for each in stages), default=0.0)
    served = [each.served for each in stages if each.served]
    parts = [f"about {_gigabytes(here)}"] if here else []
    parts += [f"served: about {_gigabytes(memory)} of GPU memory at the server" for memory in served]
    return "; ".join([*parts, *unknown]) or "none"


def _calls(stages: Sequence[Plan]) -> Value:
    calls = [each.calls for each in stages]
    unknown = next((each.name for each in stages if each.calls is None), "")
    return f"unknown: {unknown} decides" if unknown else sum(filter(None, calls))


def _tokens(stages: Sequence[Plan]) -> str:
    """Return the tokens that LLMs and APIs read and write."""
    if unknown := next((each.name for each in stages if each.prompt_tokens is None), ""):
        return f"unknown: {unknown} decides"
    read, written = sum(each.prompt_tokens or 0 for each in stages), sum(each.completion_tokens or 0 for each in stages)
    return ", ".join([f"{read:,} read"] * bool(read) + [f"{written:,} written"] * bool(written)) or "none"


def _hours(stages: Sequence[Plan]) -> Value:
    unknown = next((each.name for each in stages if each.seconds is None), "")
    return f"unknown for {unknown}" if unknown else sum(each.seconds or 0.0 for each in stages) / 3600


def _dollars(stages: Sequence[Plan]) -> Value:
    known = sum(each.dollars or 0.0 for each in stages)
    unpriced = [each for each in stages if each.dollars is None]
    if not unpriced:
        return known
    reason = "unknown: no price in the card"
    if all(each.served for each in unpriced):
        reason = "your server's"
    elif any(each.calls is None for each in unpriced):
        reason = "unknown, as the calls are"
    return f"{shown_dollars(known)} and {reason}" if known else reason


def _downloads(stages: Sequence[Plan]) -> str:
    unknown = [f"unknown size of {each.name}" for each in stages if each.fetch is None]
    size = sum(each.fetch or 0.0 for each in stages)
    return "; ".join([*([f"about {_gigabytes(size)}"] if size else []), *unknown]) or "none"


def _gigabytes(size: float) -> str:
    """Return bytes as gigabytes, in whole ones from ten on."""
    amount = size / GIGABYTE
    return f"{amount:,.0f} GB" if amount >= 10 else f"{amount:.1f} GB"
