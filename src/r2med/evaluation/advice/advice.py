"""Advice: pipelines with their scores and costs, and a recommendation."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

import numpy as np

from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import ALPHA
from r2med.foundation.pages.cells import shown_dollars

FEWEST_TO_TRADE = 100
"""Judged questions below which no points are given up: the best mean then often belongs to another pipeline than the
best, so that a loss against it says little. In `benchmarks/advice.py`, 100 questions lose more than 2 points in about 3
% of draws; a bound stricter than 95 % changes this little."""

Group = Literal["words", "feedback", "dense", "fusion", "expansion", "reranking"]


@dataclass(frozen=True)
class Rung:
    """The score and the cost of a pipeline. Scores are points, the measure × 100."""

    group: Group
    """The group of the ladder."""
    system: str
    """The pipeline, as typed."""
    value: float
    """Mean over the questions."""
    low: float | None
    """Lower end of the 95 % interval of `value`."""
    high: float | None
    """Upper end of the 95 % interval of `value`."""
    questions: int
    """Questions on which it was scored. A pipeline that could not win was stopped before all were asked."""
    p50: float | None
    """Median seconds from a question to its ranking, of questions that were asked one by one. If an LLM is asked, the
    mean seconds of a question; None if they are not known."""
    p95: float | None
    """Seconds that 95 % of these questions need at most; None if an LLM is asked."""
    dollars: float | None
    """For 1,000 questions; None if a price is not known."""
    tuned: int = 1
    """Number of settings that were tried."""
    tuned_from: str = ""
    """The pipeline with the first of these settings, as typed."""
    behind: float = 0.0
    """Points below the best pipeline on the same questions."""
    behind_low: float | None = None
    """Lower end of the 95 % interval of `behind`; None for the best."""
    behind_high: float | None = None
    """Upper end of the 95 % interval of `behind`; None for the best."""
    p: float = 1.0
    """p-value of the difference to the best, adjusted for all pairs of pipelines (max-T)."""
    unranked: int = 0
    """Passages that rerankers were shown and did not rank."""
    note: str = ""
    """A remark that is shown beside the rung."""


@dataclass(frozen=True)
class Advice:
    """All pipelines that were tried, the recommendation, and the smallest difference that the questions can show."""

    dataset: str
    """The name of the dataset."""
    questions: int
    """Number of judged questions."""
    rungs: tuple[Rung, ...]
    """The pipelines that were tried."""
    best: str
    """The pipeline with the best mean."""
    value: float
    """What choosing the best scores: the mean if each fold of the questions is answered by the pipeline that is best on
    the other folds. The mean of `best` itself is often too high, because it is the highest of several."""
    low: float | None
    """Lower end of the 95 % interval of `value`."""
    high: float | None
    """Upper end of the 95 % interval of `value`."""
    recommended: str
    """The best pipeline. With `give_up` and enough questions, the cheapest one that surely loses no more than that."""
    fastest: str
    """The pipeline with the smallest median of seconds."""
    detectable_gap: float
    """Smallest difference of `detectable_pair`, in points, that these questions can show."""
    detectable_pair: tuple[str, str] | None = None
    """The two pipelines of `detectable_gap`."""
    give_up: float | None = None
    """Points that the user would give up for a cheaper or faster pipeline."""
    left_out: tuple[str, ...] = ()
    """Pipelines that could not run, with the reason."""
    not_tried: tuple[str, ...] = ()
    """Kinds of pipelines that were not tried, and what they need."""
    unfound: int = 0
    """Questions for which search by words finds no document."""
    data: str = ""
    """The word to type for the dataset."""

    def rung(self, system: str) -> Rung:
        """Return the rung of a system."""
        return next(rung for rung in self.rungs if rung.system == system)

    @property
    def serve(self) -> str:
        """The command that serves the recommended pipeline."""
        return f"r2med serve {shlex.quote(self.data or self.dataset)} --system {shlex.quote(self.recommended)}"

    @property
    def alternatives(self) -> list[Rung]:
        """The pipelines that are cheaper or faster than the best and were judged on all questions."""
        best = self.rung(self.best)
        others = [rung for rung in self.rungs if rung.system != self.best and rung.questions == self.questions]
        return [rung for rung in others if _less(rung.dollars, best.dollars) or _less(rung.p50, best.p50)]

    @property
    def reason(self) -> str:
        """Why the recommended pipeline is recommended."""
        chosen = self.rung(self.recommended)
        if self.recommended != self.best:
            return f"cheaper or faster than the best; expected loss {loss(chosen)}, surely within {self.give_up:g}"
        if self.give_up is not None and self.alternatives and self.questions < FEWEST_TO_TRADE:
            return (
                f"the best; {self.questions} judged questions are too few to know what {self.give_up:g} points are "
                f"(give_up (--give-up) needs {FEWEST_TO_TRADE})"
            )
        if self.give_up is not None and self.alternatives:
            return f"the best; no cheaper or faster one surely loses no more than {self.give_up:g} points"
        return "no other has a higher score"

    def verdict(self) -> list[str]:
        """Return the recommendation in sentences."""
        best, chosen, fast = (self.rung(name) for name in (self.best, self.recommended, self.fastest))
        spread = "" if self.low is None or self.high is None else f" ({self.low:.1f} to {self.high:.1f})"
        lines = [
            f"Best: {best.system}. Expect {HEADLINE_MEASURE} {self.value:.1f}{spread}: the score on questions that had "
            "no part in choosing."
        ]
        lines.append(f"Use {chosen.system}: {self.reason}; {_price(chosen)}.")
        if fast.system != best.system:
            lines.append(
                f"Fastest: {fast.system}, p50 {_milliseconds(fast.p50)}, {fast.behind:.1f} points behind the best."
            )
        lines += [
            f"Cheaper or faster: {rung.system}, expected loss {loss(rung)}; {_price(rung)}."
            for rung in self.alternatives
        ]
        if self.alternatives and self.give_up is None and self.questions >= FEWEST_TO_TRADE:
            lines.append("Would you give up some points for one of these? Say how many: give_up (--give-up 2)")
        return [*lines, *self.limits]

    @property
    def limits(self) -> list[str]:
        """What these questions cannot show, and what was not tried, in sentences."""
        others = [rung for rung in self.rungs if rung.system != self.best and rung.questions == self.questions]
        lines = []
        if self.unfound:
            lines.append(
                f"{self.unfound} of {self.questions} questions share no word with any document: search by words finds "
                "nothing for them."
            )
        if others and not any(rung.behind for rung in others):
            lines.append(f"All pipelines have the same mean on these {self.questions} questions.")
        elif others and all(rung.p >= ALPHA for rung in others):
            lines.append(f"The differences from the best may all be chance: every adjusted p is at least {ALPHA:g}.")
        if self.detectable_pair:
            lines.append(
                f"With these {self.questions} questions a difference below {self.detectable_gap:.1f} points between "
                f"{' and '.join(self.detectable_pair)} cannot be distinguished from noise. More judged questions help."
            )
        elif others:
            lines.append(
                f"The smallest visible difference is not known: each pipeline differs from {self.best} by the same "
                "amount on every question, so there is no spread to compute it from."
            )
        if self.not_tried:
            lines.append(f"Not tried: {'; '.join(self.not_tried)}.")
        return lines


def surely_within(values: Floats, best: int, give_up: float) -> list[int]:
    """Return the best row and all rows whose loss against it is at most `give_up`, by the upper bound of the loss.

    The bound is one-sided, at 95 % over all rows together (Bonferroni): one of many rows must not pass by chance.
    Only the best is returned for fewer than `FEWEST_TO_TRADE` questions.
    """
    from scipy.stats import t as student

    rows, count = values.shape
    if count < FEWEST_TO_TRADE:
        return [best]
    losses = values[best] - values
    errors = losses.std(axis=1, ddof=1) / np.sqrt(count)
    bounds = losses.mean(axis=1) + student.ppf(1 - ALPHA / max(1, rows - 1), count - 1) * errors
    return [row for row in range(rows) if row == best or bounds[row] <= give_up]


def loss(rung: Rung) -> str:
    """Return the expected loss against the best, with its interval."""
    if rung.behind_low is None or rung.behind_high is None:
        return f"{rung.behind:.1f} points"
    return f"{rung.behind:.1f} points ({rung.behind_low:.1f} to {rung.behind_high:.1f})"


def _less(figure: float | None, than: float | None) -> bool:
    """Return True if a known figure is smaller than another known one."""
    return figure is not None and than is not None and figure < than


def _price(rung: Rung) -> str:
    dollars = "at an unknown price" if rung.dollars is None else f"${shown_dollars(rung.dollars)} for 1,000 questions"
    if rung.p95 is None:
        return f"{dollars}, {_milliseconds(rung.p50)} for a question on average"
    return f"{dollars}, p95 {_milliseconds(rung.p95)}"


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.0005 else "under 1 ms"
