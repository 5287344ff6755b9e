"""Count the personal data that was replaced, and keep a sample of it for people to check."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from r2med.foundation.pages.text_formats import csv_rows
from r2med.foundation.text.personal_data import PERSONAL_KINDS, PersonalSpan

SAMPLE_FILE = "replaced-sample.csv"
SAMPLE_ROWS = 200
CONTEXT_CHARACTERS = 60
AnyReported = TypeVar("AnyReported")
_COLUMNS = ("item", "field", "placeholder", "kind", "rule", "before", "replaced", "after")


@dataclass
class PersonalDataReport:
    """What a step replaced: counts, and a random sample that must stay in the folder of the build."""

    not_looked_for: Sequence[str] = ()
    kinds: Counter[str] = field(default_factory=Counter)
    items: int = 0
    changed: int = 0
    not_found: int = 0
    """Quotes of the LLM that the text does not contain."""
    _sample: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)
    _random: random.Random = field(default_factory=lambda: random.Random(0))

    def add(self, item: str, name: str, text: str, span: PersonalSpan, placeholder: str) -> None:
        """Count one replacement, and add it to the sample by chance."""
        number = self.kinds.total()
        self.kinds[span.kind] += 1
        slot = number if number < SAMPLE_ROWS else self._random.randrange(number + 1)
        if slot < SAMPLE_ROWS:
            before = text[max(0, span.start - CONTEXT_CHARACTERS) : span.start]
            after = text[span.end : span.end + CONTEXT_CHARACTERS]
            row = (item, name, placeholder, span.kind, span.rule, before, text[span.start : span.end], after)
            self._sample[slot : slot + 1] = [(number, row)]

    def counted(self, item: AnyReported, changed: bool) -> AnyReported:
        """Count an item, and return it."""
        self.items += 1
        self.changed += changed
        return item

    def facts(self) -> dict[str, Any]:
        """Return the counts for the status and the datasheet."""
        return {
            "kinds": {kind: self.kinds[kind] for kind in PERSONAL_KINDS if self.kinds[kind]},
            "items": self.items,
            "changed": self.changed,
            "not looked for": list(self.not_looked_for),
            "quotes not found": self.not_found,
        }

    def sample(self) -> str:
        """Return the sample as CSV, in the order of the texts. It holds personal data."""
        return csv_rows([_COLUMNS, *(row for _, row in sorted(self._sample))])
