"""What an LLM used: counted as it happens, so that a run that stops half-way still tells what it paid."""

from __future__ import annotations

import threading
from collections import Counter

from r2med.llm.contracts import Failure, Generation, RawAnswer
from r2med.llm.llm_cards import LLMCard
from r2med.llm.price import cost_usd


class Usage:
    """Counts of one LLM in this process. Any thread may count."""

    def __init__(self, card: LLMCard) -> None:
        self._card = card
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._seconds: list[float] = []

    def asked(self, answer: RawAnswer | Failure) -> None:
        """Count what came back for a question that was asked now."""
        if isinstance(answer, Failure) and answer.kind == "budget":
            return  # not asked
        with self._lock:
            self._counts["calls"] += 1
            self._counts["retries"] += answer.attempts - 1
            self._counts["prompt_tokens"] += answer.prompt_tokens
            self._counts["completion_tokens"] += answer.completion_tokens
            if isinstance(answer, RawAnswer):
                self._counts["estimated"] += answer.estimated
                self._seconds.append(answer.seconds)

    def ended(self, outcome: Generation | RawAnswer | Failure, journaled: bool) -> None:
        """Count how a question ended, asked now or found in the journal."""
        with self._lock:
            if isinstance(outcome, Failure):
                self._failures[outcome.kind] += 1
            if journaled:
                self._counts["journaled"] += 1
                self._counts["journaled_prompt_tokens"] += outcome.prompt_tokens
                self._counts["journaled_completion_tokens"] += outcome.completion_tokens

    def as_dict(self) -> dict[str, float]:
        """Return all by name; `estimated` is how many calls' tokens the server did not tell."""
        with self._lock:
            counts, seconds, failures = self._counts, sorted(self._seconds), self._failures
            return {
                "calls": counts["calls"],
                "journaled": counts["journaled"],
                "retries": counts["retries"],
                "prompt_tokens": counts["prompt_tokens"],
                "completion_tokens": counts["completion_tokens"],
                "estimated": counts["estimated"],
                "journaled_prompt_tokens": counts["journaled_prompt_tokens"],
                "journaled_completion_tokens": counts["journaled_completion_tokens"],
                "cost_usd": cost_usd(self._card, counts["prompt_tokens"], counts["completion_tokens"]),
                "latency_median": _quantile(seconds, 0.5),
                "latency_p95": _quantile(seconds, 0.95),
                "failures": sum(failures.values()),
                **{f"failures_{kind}": count for kind, count in sorted(failures.items())},
            }


def _quantile(ordered: list[float], share: float) -> float:
    """Return the smallest value that this share of all does not exceed; 0 where there is none."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0.0
