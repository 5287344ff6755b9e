"""Advice: a ladder of pipelines, how well each does and what it takes, and the verdict."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from r2med.errors import UserError
from r2med.measure import HEADLINE
from r2med.measure.significance import ALPHA
from r2med.store.files import write_atomically

FORMAT = 1
SUFFIX = ".advice.json"
"""How the name of a file of advice ends."""

Group = Literal["words", "feedback", "dense", "fusion", "expansion", "reranking"]


@dataclass(frozen=True)
class Rung:
    """How well a pipeline does, and what it takes. Figures are points, the measure × 100."""

    group: Group
    system: str
    value: float
    low: float
    high: float
    questions: int
    """On how many it was judged; fewer than there are, if it was stopped since it could not win."""
    p50: float | None
    p95: float | None
    """Seconds from a question to its ranking; None if the cost is not known."""
    dollars: float | None
    """For 1,000 questions; None if a price is not known."""
    tuned: int = 1
    """How many settings were tried."""
    behind: float = 0.0
    """Points that it has less than the best on the same questions."""
    p: float = 1.0
    """How likely so large a difference to the best would be by chance, corrected for all that were compared."""
    note: str = ""


@dataclass(frozen=True)
class Advice:
    """A ladder, the verdict, and what the questions can tell apart at all."""

    dataset: str
    questions: int
    rungs: tuple[Rung, ...]
    best: str
    cheapest: str
    """The cheapest of those that cannot be told from the best."""
    fastest: str
    detectable_gap: float
    """Points below which a difference could not be seen with these questions."""
    left_out: tuple[str, ...] = ()
    """What could not run, and why."""
    data: str = ""
    """What to type for the dataset."""

    def rung(self, system: str) -> Rung:
        """Return the rung of a system."""
        return next(rung for rung in self.rungs if rung.system == system)

    @property
    def serve(self) -> str:
        """The command that serves the cheapest of the equally good."""
        return f"r2med serve {shlex.quote(self.data or self.dataset)} --system {shlex.quote(self.cheapest)}"

    @property
    def reason(self) -> str:
        """Why to use the cheapest of the equally good."""
        cheap = self.rung(self.cheapest)
        if self.cheapest != self.best:
            chance = f"which may be chance (p = {cheap.p:.2f})"
            return f"{cheap.behind:.1f} points behind the best, {chance}, and cheaper or faster"
        equal = [rung for rung in self.rungs if rung.system != self.best and not rung.note and rung.p > ALPHA]
        if equal:
            return f"the best, and none of the {len(equal)} that cannot be told from it is cheaper or faster"
        return "the best; the others are behind by more than chance"

    def verdict(self) -> list[str]:
        """Return what a person may act on, in sentences."""
        best, cheap, fast = (self.rung(name) for name in (self.best, self.cheapest, self.fastest))
        lines = [f"Best: {best.system}, {HEADLINE} {best.value:.1f} ({best.low:.1f} to {best.high:.1f})."]
        lines.append(f"Use {cheap.system}: {self.reason}; {_price(cheap)}.")
        behind = f"{fast.behind:.1f} points behind the best"
        lines.append(f"Fastest: {fast.system}, p50 {_milliseconds(fast.p50)}, {behind}.")
        if self.detectable_gap:
            lines.append(
                f"With these {self.questions} questions a difference below {self.detectable_gap:.1f} points cannot be "
                "told from noise: more judged questions tell more."
            )
        return lines

    def write(self, path: Path) -> None:
        """Write it as JSON, which the board shows as a picture."""
        write_atomically(path, (json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n").encode())

    @classmethod
    def read(cls, path: Path) -> Advice:
        """Read what `write` wrote. Raises UserError if it is something else."""
        try:
            body = json.loads(path.read_bytes())
            if body.pop("format") != FORMAT:
                raise ValueError
            rungs = tuple(Rung(**rung) for rung in body.pop("rungs"))
            return cls(rungs=rungs, left_out=tuple(body.pop("left_out")), **body)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{path} is no advice of this version: make it again with r2med advise") from None


def _price(rung: Rung) -> str:
    dollars = "at an unknown price" if rung.dollars is None else f"${rung.dollars:.2f} for 1,000 questions"
    return f"{dollars}, p95 {_milliseconds(rung.p95)}"


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.0005 else "under 1 ms"
