"""The best system within a budget: dollars or tokens per query, or seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, assert_never, get_args

from r2med.evaluation.comparison.gaps import Gap
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.pages.cells import shown_dollars, signed

CostName = Literal["dollars", "tokens", "p95"]
COST_NAMES: tuple[CostName, ...] = get_args(CostName)


@dataclass(frozen=True)
class CostLimit:
    """The most that a query may cost."""

    cost: CostName
    """What is limited: dollars, tokens of LLMs, or the seconds within which 95 % of queries are answered."""
    most: float

    @classmethod
    def parse(cls, text: str) -> CostLimit:
        """Return the limit of a text such as `dollars=0.01`, `tokens=2000` or `p95=1.5`. Raises UserError."""
        name, _, number = (part.strip() for part in text.partition("="))
        try:
            cost = next(each for each in COST_NAMES if each == name)
            most = float(number)
            if not 0 <= most < float("inf"):
                raise ValueError
        except StopIteration:
            raise unknown("cost", name, COST_NAMES, "dollars=0.01, tokens=2000 or p95=1.5") from None
        except ValueError:
            raise UserError(f"{text!r}: write a number from 0 on after {name}=, as in dollars=0.01") from None
        return cls(cost, most)

    def shown(self, amount: float) -> str:
        """Return an amount of this cost as text."""
        match self.cost:
            case "dollars":
                return f"${shown_dollars(amount)} per query"
            case "tokens":
                shown = f"{amount:,.0f}"
                return f"{shown} {'token' if shown == '1' else 'tokens'} per query"
            case "p95":
                return f"p95 {amount:.2g} s"
            case other:
                assert_never(other)


@dataclass(frozen=True)
class PricedSystem:
    """A system with its mean score in points and what a query costs."""

    system: str
    mean: float
    price: float | None
    """In the unit of the limit; None if it is not known."""


@dataclass(frozen=True)
class BudgetChoice:
    """The best system within a budget, and what more money would buy."""

    limit: CostLimit
    best: PricedSystem | None
    """The system with the best mean within the budget; None if no system is within it."""
    equal: tuple[PricedSystem, ...] = ()
    """The other systems within the budget that do not differ significantly from it, cheapest first."""
    better: PricedSystem | None = None
    """The cheapest system beyond the budget that is significantly better."""
    gain: Gap | None = None
    """The difference of `better` from `best`, in points."""
    cheapest: PricedSystem | None = None
    """The cheapest system, if no system is within the budget."""
    unpriced: tuple[str, ...] = ()
    """Systems whose price is not known. They are not chosen."""

    def as_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def sentences(self, measure: str) -> list[str]:
        """Return the choice in sentences."""
        limit = self.limit.shown
        lines = [f"No system costs at most {limit(self.limit.most)}."]
        if self.best is not None:
            lines = [
                f"At most {limit(self.limit.most)}: {self._named(self.best)} is the best, {measure} "
                f"{self.best.mean:.1f}."
            ]
            others = ", ".join(map(self._named, self.equal))
            lines.append(f"Not significantly different from it: {others}." if others else "All others are worse.")
        elif self.cheapest is not None:
            lines.append(f"The cheapest is {self._named(self.cheapest)}.")
        if self.better is not None and self.gain is not None:
            lines.append(f"Significantly better: {self._named(self.better)}, {_points(self.gain)}.")
        elif self.best is not None:
            lines.append("No system that costs more is significantly better.")
        if self.unpriced:
            lines.append(f"Left out, because the cost is not known: {', '.join(self.unpriced)}.")
        return lines

    def _named(self, each: PricedSystem) -> str:
        assert each.price is not None
        return f"{each.system} ({self.limit.shown(each.price)})"


Tests = Callable[[str, Sequence[str]], Mapping[str, Gap]]
"""Tests some systems against one: name -> its difference from that one, adjusted for the number of these tests."""


def budget_choice(
    limit: CostLimit, systems: Sequence[PricedSystem], tests: Tests, lower_is_better: bool = False
) -> BudgetChoice:
    """Choose the system with the best mean within a budget, and test what the others are worth.

    Systems within the budget are tested against the best of them, and so are those beyond it, apart: a comparison that
    a choice does not need makes no test weaker.
    """

    def order(each: PricedSystem) -> tuple[float, float, str]:
        return (each.mean if lower_is_better else -each.mean, each.price or 0.0, each.system)

    def price(each: PricedSystem) -> tuple[float, str]:
        return (each.price or 0.0, each.system)

    unpriced = tuple(each.system for each in systems if each.price is None)
    priced = sorted((each for each in systems if each.price is not None), key=price)
    within = [each for each in priced if (each.price or 0.0) <= limit.most]
    if not within:
        return BudgetChoice(limit, None, cheapest=priced[0] if priced else None, unpriced=unpriced)
    best = min(within, key=order)
    others = [each for each in within if each != best]
    gaps = tests(best.system, [each.system for each in others])
    equal = tuple(each for each in others if not gaps[each.system].significant)
    beyond = [each for each in priced if (each.price or 0.0) > limit.most]
    gaps = tests(best.system, [each.system for each in beyond])
    better = [
        each
        for each in beyond
        if gaps[each.system].significant and (each.mean < best.mean if lower_is_better else each.mean > best.mean)
    ]
    if not better:
        return BudgetChoice(limit, best, equal, unpriced=unpriced)
    return BudgetChoice(limit, best, equal, better[0], gaps[better[0].system], unpriced=unpriced)


def _points(gap: Gap) -> str:
    ends = "" if gap.low is None or gap.high is None else f" (95 % interval {signed(gap.low)} to {signed(gap.high)})"
    return f"{signed(gap.difference)} points{ends}"
