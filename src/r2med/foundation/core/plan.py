"""A plan: the calls, tokens, dollars, downloads, time and memory of some work, estimated before it begins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

HALF_PRECISION_BYTES, MEMORY_MARGIN = 2, 1.2
"""Bytes of a weight in half precision, and the factor for activations and caches beside the weights."""


class PlannedLLM(Protocol):
    """The facts of an LLM that a plan uses."""

    @property
    def model(self) -> str:
        """The name of the model at its server."""

    @property
    def backend(self) -> str:
        """The backend that runs it."""

    @property
    def context_length(self) -> int:
        """The largest number of tokens of a prompt and its answer."""


@dataclass(frozen=True)
class PlannedCall:
    """A request that the work would send, and its estimated cost."""

    request: Any
    """The request, which can be compared and hashed."""
    prompt_tokens: int
    completion_tokens: int
    """Tokens of a typical answer."""
    dollars: float | None
    """Price with a typical answer. None if no price is known."""
    dollars_at_most: float | None
    """Price if the answer uses its whole token limit."""
    is_answered: bool = False
    """True if there is an answer already, so that nothing would be sent."""


@dataclass(frozen=True)
class Plan:
    """What some work needs: a stage on all datasets of a run, or the questions to an LLM. Unknown numbers are None.

    Plans of the same work on several datasets can be added. A request in both of them counts once.
    """

    name: str = ""
    """The stage, as typed."""
    work: str = ""
    """The work to do, and the part of it that the store has already."""
    fetch: float | None = 0.0
    """Estimated bytes of weights to download. 0 if they are here or not needed."""
    seconds: float | None = None
    """Estimated seconds; None if unknown."""
    missing: str = ""
    """One line about what is missing. Empty if the stage can run."""
    memory: float | None = 0.0
    """Estimated bytes of GPU memory for the weights that run in this process. 0 if there are none."""
    served: float | None = 0.0
    """Estimated bytes of GPU memory that the stage's LLM needs at its server. 0 if a provider serves it."""
    calls: int | None = 0
    """Estimated number of LLM calls that have no answer yet."""
    prompt_tokens: int | None = 0
    """Estimated tokens that an LLM or an API reads."""
    completion_tokens: int | None = 0
    """Estimated tokens that an LLM writes, if its answers are as long as usual."""
    dollars: float | None = 0.0
    """Estimated price of its calls. None if no price is known, as for a server of your own."""
    dollars_at_most: float | None = 0.0
    """Estimated price if every answer uses its whole token limit."""
    answered: int = 0
    """Number of further calls that have an answer already."""
    llm: PlannedLLM | None = None
    """The LLM that is asked; None without one."""
    asked: tuple[PlannedCall, ...] = ()
    """The calls themselves, if their prompts are known."""
    cut: int = 0
    """Number of prompts that would be shortened."""
    unfit: int = 0
    """Number of prompts that would not fit at all and would not be sent."""
    note: str = ""
    """Further information, for example about the conversation that begins with each request."""
    conversation_calls: int = 0
    """Largest number of calls of the conversations that the requests begin. 0 without conversations."""
    conversation_dollars: float = 0.0
    """Largest price of these conversations, if every turn is as long as it may be."""

    @classmethod
    def of_calls(cls, llm: PlannedLLM | None, asked: Sequence[PlannedCall], **more: Any) -> Plan:
        """Return the plan of calls whose prompts are known. `more` are further fields."""
        left = [call for call in asked if not call.is_answered]
        return cls(
            llm=llm,
            asked=tuple(asked),
            calls=len(left),
            answered=len(asked) - len(left),
            **{field: _sum(*(getattr(call, field) for call in left)) for field in _COSTS},
            **more,
        )

    @property
    def requests(self) -> tuple[Any, ...]:
        """The distinct requests of the work, if their prompts are known."""
        return tuple(call.request for call in self.asked)

    @property
    def unanswered(self) -> tuple[Any, ...]:
        """The requests among them that have no answer yet."""
        return tuple(call.request for call in self.asked if not call.is_answered)

    def __add__(self, other: Plan) -> Plan:
        known = set(self.requests)
        twice = Plan.of_calls(self.llm, [call for call in other.asked if call.request in known])
        numbers = {
            field: _sum(getattr(self, field), getattr(other, field), minus=getattr(twice, field)) for field in _NUMBERS
        }
        return replace(
            self,
            **numbers,
            llm=self.llm or other.llm,
            asked=self.asked + tuple(call for call in other.asked if call.request not in known),
            note=self.note or other.note,
        )

    def times(self, runs: int) -> Plan:
        """Return the plan of several runs, if it asks an LLM. Other work is the same in each run, and done once."""
        if self.llm is None or runs == 1:
            return self
        numbers: dict[str, Any] = {
            name: None if (value := getattr(self, name)) is None else value * runs for name in (*_NUMBERS, "seconds")
        }
        return replace(self, **numbers)

    @property
    def totals(self) -> Plan:
        """The plan without its prompts, which may be many."""
        return replace(self, asked=())

    def with_prompts(self, prompts: Plan) -> Plan:
        """Return the plan of a stage without the calls that have an answer already, with the cost of its own prompts.

        `prompts` is the plan of the prompts that are known. A stage may make more calls, which depend on the answers.
        """
        known = prompts.calls
        if self.calls is None or self.seconds is None or known is None or not prompts.asked:
            return self
        share = known / len(prompts.asked)
        calls = round(self.calls * share)
        scale = calls / known if known else 0.0
        return replace(
            self,
            work=f"asks an LLM about {calls:,} times",
            calls=calls,
            seconds=self.seconds * share,
            prompt_tokens=round((prompts.prompt_tokens or 0) * scale),
            completion_tokens=round((prompts.completion_tokens or 0) * scale),
            dollars=None if self.dollars is None else (prompts.dollars or 0.0) * scale,
            dollars_at_most=None if self.dollars is None else (prompts.dollars_at_most or 0.0) * scale,
        )


def of_all_runs(runs: Iterable[Mapping[str, Plan]]) -> dict[str, Plan]:
    """Return the plans of several runs of the same stages as one for each. The requests are those of the first run.

    Only totals are added: a request of another run looks the same, but is asked once more.
    """
    found: dict[str, Plan] = {}
    for plans in runs:
        for name, each in plans.items():
            found[name] = found[name] + each.totals if name in found else each
    return found


_COSTS = ("prompt_tokens", "completion_tokens", "dollars", "dollars_at_most")
"""The costs of a call that a plan adds up."""
_NUMBERS = (*_COSTS, "calls", "answered", "cut", "unfit", "conversation_calls", "conversation_dollars")
"""The numbers of plans that are added."""


def _sum(*values: float | None, minus: float | None = 0) -> Any:
    """Return the sum, or None if a part of it is unknown."""
    return None if None in values or minus is None else sum(filter(None, values)) - minus


_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(\d+) × )?(\d+(?:\.\d+)?)([MBT])(?![A-Za-z])", re.IGNORECASE)
_UNITS = {"M": 1e6, "B": 1e9, "T": 1e12}


def parameter_count(stated: str) -> float | None:
    """Return the number of parameters in a card's `parameters` or in a model name: 220 million for "2 × 110M".

    None if it states no size.
    """
    match = _SIZE.search(stated)
    return round(int(match[1] or 1) * float(match[2]) * _UNITS[match[3].upper()]) if match else None


def gpu_memory(parameters: str) -> float | None:
    """Return the estimated bytes of GPU memory of a model from a card's `parameters`; None if they state no size."""
    count = parameter_count(parameters)
    return None if count is None else count * HALF_PRECISION_BYTES * MEMORY_MARGIN


class PlannedData(Protocol):
    """A dataset of a plan. If its card states its sizes, nothing is loaded."""

    @property
    def queries(self) -> int:
        """The number of queries."""

    @property
    def documents(self) -> int:
        """The number of documents."""

    def keeps(self, kind: str, model: str = "") -> bool:
        """Return True if the store has artefacts of this kind, and of this model, for the dataset."""
