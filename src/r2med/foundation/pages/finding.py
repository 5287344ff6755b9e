"""A finding: what a check says about data, with a verdict and its evidence, and how it is shown.

`r2med data check`, `r2med audit`, `r2med analyse reliability` and datasheets use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from r2med.foundation.pages.cells import Column, Tone
from r2med.foundation.pages.page import Section, Table
from r2med.foundation.text.plurals import counted

MAX_EVIDENCE = 1000
"""Largest number of rows in one table of evidence. Further rows are only counted."""

Verdict = Literal["sound", "look", "broken"]
VERDICTS: tuple[Verdict, ...] = ("sound", "look", "broken")
"""The verdicts, from good to bad."""
VERDICT_WORDS: Mapping[Verdict, str] = {"sound": "sound", "look": "needs a look", "broken": "broken"}
"""Verdicts as a person reads them."""
TONES: Mapping[Verdict, Tone] = {"sound": "good", "look": "warning", "broken": "error"}

EvidenceCell = str | int | float | None


class FindingPart(BaseModel):
    """A part of what checks say, which is written as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Evidence(FindingPart):
    """A table of evidence, such as the ids of copies."""

    columns: tuple[str, ...]
    """The heads of the columns."""
    rows: tuple[tuple[EvidenceCell, ...], ...]
    """The rows, at most 1,000."""
    total: int
    """Number of rows that there are."""
    title: str = ""
    """The title of the table."""

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[EvidenceCell]], title: str = "") -> Evidence:
        """Return a table with at most `MAX_EVIDENCE` of the rows."""
        kept = [tuple(row) for row in rows]
        return cls(columns=tuple(columns), rows=tuple(kept[:MAX_EVIDENCE]), total=len(kept), title=title)

    @classmethod
    def found(cls, columns: Sequence[str], rows: Sequence[Sequence[EvidenceCell]]) -> tuple[Evidence, ...]:
        """Return the one table of a finding; nothing without rows."""
        return (cls.of(columns, rows),) if rows else ()

    @property
    def typed_columns(self) -> list[Column]:
        """The columns. A column of numbers alone is one of numbers: ids are texts, even those of digits."""
        places = range(len(self.columns))
        numeric = [all(isinstance(row[place], int | float) for row in self.rows) for place in places]
        return [
            Column(head, "number" if number else "text") for head, number in zip(self.columns, numeric, strict=True)
        ]


class Finding(FindingPart):
    """The result of one check."""

    id: str = ""
    """The name of the check. It stays the same in all versions."""
    title: str = ""
    """What the check looks at."""
    verdict: Verdict
    """sound: nothing was found. look: a person should look at it. broken: scores mislead."""
    sentence: str
    """The finding in plain words."""
    numbers: Mapping[str, int | float] = {}
    """The numbers behind the sentence, by name."""
    evidence: tuple[Evidence, ...] = ()
    """Tables of ids and numbers."""

    def tables(self, rows: int, advice: str) -> Iterator[Table]:
        """Yield the evidence with at most `rows` rows each. `advice` says where to see more."""
        for number, evidence in enumerate(self.evidence):
            title = evidence.title or (self.title if self.verdict == "sound" else "")
            shown = evidence.rows[:rows]
            hidden = evidence.total - len(shown)
            note = f"{counted(hidden, 'further row')}: {advice}" if hidden else ""
            yield Table(evidence.typed_columns, shown, title, note, f"{self.id}-{number}" if number else self.id)

    def section(self, rows: int, advice: str) -> Section:
        """Return the finding as a section of a page."""
        aside, tone = VERDICT_WORDS[self.verdict], TONES[self.verdict]
        return Section(self.title, list(self.tables(rows, advice)), self.sentence, aside=aside, aside_tone=tone)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of some verdicts; sound if there are none."""
    return max(verdicts, key=VERDICTS.index, default="sound")
