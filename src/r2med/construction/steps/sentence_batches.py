"""Sentences that one request translates, and what came back for each item."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from r2med.construction.items import StreamItem

DrugNames = Mapping[str, tuple[str, ...]]


class SentenceBatch(StreamItem):
    """Sentences of one item that are translated by one request."""

    item: str
    """The id of the item."""
    sentences: tuple[str, ...]
    glossary: str = ""
    """For the prompt: drug names of the user's table that the sentences contain."""
    translations: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The id of the item."""
        return self.item

    @classmethod
    def of(cls, key: str, sentences: Sequence[str], drugs: DrugNames) -> SentenceBatch:
        """Return a batch with the drug names that its sentences contain."""
        text = "\n".join(sentences)
        known = [f"{name} = {' or '.join(each)}" for name, each in drugs.items() if name in text]
        return cls(item=key, sentences=tuple(sentences), glossary="; ".join(known))

    def fields(self) -> dict[str, str]:
        """Return the fields of the prompt. Sentences are JSON, so that no sentence can pose as another."""
        numbered = {str(number): sentence for number, sentence in enumerate(self.sentences, 1)}
        return {
            "sentences": json.dumps(numbered, ensure_ascii=False, indent=0),
            "glossary": self.glossary or "none",
        }

    def returned(self) -> SentenceBatch:
        """Return the batch that is translated back."""
        return SentenceBatch(item=self.item, sentences=self.translations)


@dataclass
class SentenceTranslations:
    """The translations of the sentences of some items."""

    batches: list[SentenceBatch] = field(default_factory=list)
    by_item: dict[str, dict[str, str]] = field(default_factory=dict)
    """Id of an item -> sentence -> translation."""
    failures: dict[str, str] = field(default_factory=dict)
    """Id of an item -> why a request about it has no usable answer."""

    def add(self, batch: SentenceBatch) -> None:
        """Take in a translated batch."""
        self.batches.append(batch)
        self.by_item.setdefault(batch.item, {}).update(zip(batch.sentences, batch.translations, strict=True))

    def get(self, item: str, sentence: str) -> str | None:
        """Return the translation of a sentence of an item; None if it was not translated."""
        return self.by_item.get(item, {}).get(sentence)
