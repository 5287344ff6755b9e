"""Items: what LLMs, people and rules rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from r2med.foundation.store import digest

ItemId = tuple[str, str]
"""What an item is about, such as the ids of a query and of a document. The second is empty if there is only one."""


@dataclass(frozen=True)
class Item:
    """Something that is rated: texts, under the names that the rubric gives them."""

    id: ItemId
    """Raters do not see it."""
    texts: Mapping[str, str]
    """Name of the text in the rubric -> text."""
    rubric: str = ""
    """Name of the rubric."""
    stratum: str = ""
    """A group from which samples are drawn, such as the label by judges. Raters do not see it."""
    source: str = ""
    """Where the item comes from, such as a dataset. Raters do not see it."""
    sentences: tuple[tuple[str, str, str], ...] = ()
    """Sentences, their translations and what to look at, which people see instead of whole texts."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where people can read more: title, url and source."""

    @cached_property
    def token(self) -> str:
        """Identifier of the item that changes with its texts and reveals nothing."""
        texts: tuple[tuple[str, ...], ...] = self.sentences or tuple(sorted(self.texts.items()))
        return digest([self.rubric, self.source, *self.id, *(text for pair in texts for text in pair)])[:24]
