"""What may be set about an LLM reranker: typed by name, checked, and printed where it is not the default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from r2med.errors import UserError, nearest

WORDS, WORDS_OF_KIND = 300, {"similar-case": 600}
"""How much of a document is shown. 300 words hold nearly all passages of the Q&A and evidence sets whole (their means
are 60 to 130). Case reports are several times as long, and may name the diagnosis late: they get twice that, with which
twenty of them still fit a context of 32k.
"""

WEIGHT = 0.8
"""What the LLM's opinion counts. From its best to its worst candidate the first stage is then worth 2.5 points of
ten: it decides between passages that the LLM finds about as good, and never lifts a useless one over a good one.
"""


@dataclass(frozen=True)
class Settings:
    """What all methods share: what a prompt shows."""

    words: int = 0
    """Words of a document that are shown at most; 0: as the kind of task has it."""
    scores: str = "hide"
    """show: what the stage before thought of a passage stands beside it, from 0 to 1."""
    query: str = "original"
    """expanded: what an expansion wrote is shown below the query."""

    def __post_init__(self) -> None:
        self.at_least(words=0)
        self.one_of("scores", "hide", "show")
        self.one_of("query", "original", "expanded")

    def at_least(self, **least: int) -> None:
        """Complain about a number that is too small."""
        for name, number in least.items():
            if (value := getattr(self, name)) < number:
                raise UserError(f"{name} must be {number} or more, not {value}")

    def one_of(self, name: str, *choices: str) -> None:
        """Complain about a word that is not among the choices."""
        if (value := getattr(self, name)) not in choices:
            raise UserError(f"{name}={value}{nearest(value, choices)}: {' or '.join(choices)}")

    def share(self, name: str) -> None:
        """Complain about a number that is not between 0 and 1."""
        if not 0 <= (value := getattr(self, name)) <= 1:
            raise UserError(f"{name} must be from 0 to 1, not {value}")

    @classmethod
    def kinds(cls) -> Mapping[str, Callable[[str], Any]]:
        """Return how each setting is read from what was typed: as its default is."""
        return {field.name: type(field.default) for field in fields(cls)}

    @property
    def changed(self) -> tuple[tuple[str, str], ...]:
        """The settings that are not at their defaults, as one types them."""
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        return tuple((field.name, str(value).removesuffix(".0")) for field, value in values if value != field.default)

    def words_for(self, kind: str) -> int:
        """Return how many words of a document are shown."""
        return self.words or WORDS_OF_KIND.get(kind, WORDS)

    def describe(self, kind: str) -> dict[str, Any]:
        """Return all settings as they work out for a kind of task."""
        return {**asdict(self), "words": self.words_for(kind)}
