"""Let an LLM translate questions or pages sentence by sentence, and translate every sentence back.

The text of the source is kept beside the translation. Numbers and negations that changed on the way back are marked
for the people who review. No item is left out because of a mark.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

from pydantic import ConfigDict, Field, create_model, model_validator

from r2med.construction.items import Rejected, SentencePair, SourcePage, SourceQuestion, Stream, StreamItem
from r2med.construction.step import StepWork, Streams
from r2med.construction.steps.asking import ITEMS_PER_BLOCK, AskingStep
from r2med.construction.steps.sentence_batches import DrugNames, SentenceBatch, SentenceTranslations
from r2med.construction.translation.aligned_sentences import aligned_spans, joined
from r2med.construction.translation.chrf import chrf
from r2med.construction.translation.languages import language
from r2med.construction.translation.sentence_marks import sentence_marks
from r2med.data.tables.table_files import open_tables
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store.file_digests import file_digest
from r2med.models.ask.answers import LLMAnswer, Text

MAX_BATCH_CHARACTERS = 1500
"""Characters of the sentences of one request. The answer must fit into the LLM's limit, and may be longer."""

Translatable = SourceQuestion | SourcePage


class NumberedTexts(LLMAnswer):
    """One translation for each number. A missing or an additional number is an invalid answer."""

    model_config = ConfigDict(extra="forbid")

    def texts(self) -> tuple[str, ...]:
        """Return the translations in the order of their numbers."""
        return tuple(dict(self).values())


@cache
def numbered_texts(count: int) -> type[NumberedTexts]:
    """Return the model of an answer with the numbers from 1 to `count`."""
    fields: dict[str, Any] = {f"sentence_{number}": (Text, Field(alias=str(number))) for number in range(1, count + 1)}
    return create_model(f"NumberedTexts{count}", __base__=NumberedTexts, **fields)


class Translate(AskingStep[SentenceBatch], kind="build", takes="llm"):
    """Let an LLM translate questions, with answers and options, sentence by sentence, and back, for people."""

    template: ClassVar[str] = "translate"
    answer: ClassVar[type[LLMAnswer]] = NumberedTexts
    version: ClassVar[int] = 3
    reads: ClassVar[tuple[Stream, ...]] = ("questions",)
    writes: ClassVar[Stream] = "questions"

    name: str = "translate"
    source: str = Field("Chinese", description="Language of the source. Items in another script are left unchanged.")
    to: str = Field("English", description="Language to translate into.")
    drugs: str = Field(
        "",
        description="Table of drug names beside the plan: a column in the source language, a column of translations.",
    )
    batch: int = Field(10, ge=1, le=100, description="Maximum number of sentences in one request.")

    @model_validator(mode="after")
    def _known_languages(self) -> Translate:
        if language(self.source) == language(self.to):
            raise UserError(f"{self.name}: source and to are both {self.to}: name two languages")
        return self

    def items(self, streams: Streams) -> Iterator[Translatable]:
        """Yield the items to translate."""
        return streams.questions()

    def asked(self, streams: Streams) -> Iterator[SentenceBatch]:
        """Yield the sentences of all items, in batches."""
        drugs = self.drug_names(streams)
        for item in self.items(streams):
            yield from self.batches(item.id, self._open_sentences(item), drugs)

    def fields(self, item: SentenceBatch) -> Mapping[str, str]:
        """Return the languages, the sentences and the known terms."""
        return {"source": self.source, "to": self.to, **item.fields()}

    def answer_model(self, item: SentenceBatch) -> type[NumberedTexts]:
        """Return the model of an answer with a number for each sentence."""
        return numbered_texts(len(item.sentences))

    def read(self, item: SentenceBatch, answer: NumberedTexts) -> SentenceBatch:
        """Return the batch with its translations. Raises ValueError if one is only a placeholder, such as "…"."""
        texts = answer.texts()
        if any(
            _has_letters(source) and not _has_letters(text) for source, text in zip(item.sentences, texts, strict=True)
        ):
            raise ValueError("a translation has no letters")
        return item.model_copy(update={"translations": texts})

    def calls(self, streams: Streams, runtime: Runtime) -> Needs | None:
        """Return what the translations would cost. Those back are about as long as those there."""
        there = super().calls(streams, runtime)
        return there + there if there else None

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the translations depend on."""
        key = super().key(streams, runtime)
        if self.drugs:
            key["drug names"] = file_digest(streams.path(self.drugs), runtime.store)
        return key

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Translate the items, block by block, and yield them with their sentences."""
        self.announce(streams, work)
        drugs = self.drug_names(streams)
        total = 2 * sum(1 for _ in self.asked(streams))
        tally, begun, items = TranslationTally(), 0, self.items(streams)
        while block := list(itertools.islice(items, ITEMS_PER_BLOCK)):
            batches = [batch for item in block for batch in self.batches(item.id, self._open_sentences(item), drugs)]
            there = self._ask(batches, streams, work, total, begun)
            returned = [batch.returned() for batch in there.batches]
            back = self._backwards()._ask(returned, streams, work, total, begun + len(batches))
            begun += 2 * len(batches)
            for item in block:
                yield self._translated(item, there, back, tally)
        work.facts["translation"] = {"from": self.source, "to": self.to, **tally.facts()}

    def _backwards(self) -> Translate:
        """Return the step that translates back."""
        return self.model_copy(update={"source": self.to, "to": self.source})

    def _ask(
        self, batches: Sequence[SentenceBatch], streams: Streams, work: StepWork, total: int, begun: int
    ) -> SentenceTranslations:
        """Ask for the translations of some batches in one direction."""
        made = SentenceTranslations()
        outcomes = self.about(iter(batches), streams, work, total, begun)
        for batch, outcome in zip(batches, outcomes, strict=True):
            if isinstance(outcome, SentenceBatch):
                made.add(outcome)
            elif isinstance(outcome, Rejected):
                made.failures[batch.item] = outcome.note
        return made

    def _translated(
        self, item: Translatable, there: SentenceTranslations, back: SentenceTranslations, tally: TranslationTally
    ) -> StreamItem | Rejected:
        """Return the translated item with the marks of its sentences; rejected if a request had no usable answer."""
        if item.id in there.failures:
            return Rejected.of(item, "no usable answer", there.failures[item.id])
        translations = there.by_item.get(item.id, {})
        if not translations:
            tally.unchanged += 1
            return item
        pairs = [
            self._pair(name, sentence, translations[sentence], back.get(item.id, translations[sentence]) or "")
            for name, sentence in self._sentences(item)
            if sentence in translations
        ]
        tally.add(pairs)
        return self._rewritten(item, translations, tuple(pairs))

    def _pair(self, name: str, source: str, target: str, back: str) -> SentencePair:
        marks = tuple(sentence_marks(source, target, back, language(self.source), language(self.to)))
        order = 6 if language(self.source).spaced else 2  # languages without spaces have shorter n-grams
        similarity = round(chrf(back, source, order=order), 1) if back else None
        return SentencePair(field=name, source=source, target=target, back=back, similarity=similarity, marks=marks)

    # The texts of an item.

    def texts(self, item: Translatable) -> list[tuple[str, str]]:
        """Return the fields of an item that are translated, each with its text."""
        assert isinstance(item, SourceQuestion)
        options = [("options", option) for option in item.options]
        return [("text", item.text), ("answer", item.answer), *options, ("reasoning", item.reasoning)]

    def _sentences(self, item: Translatable) -> Iterator[tuple[str, str]]:
        """Yield the sentences of all fields of an item."""
        for name, text in self.texts(item):
            yield from ((name, text[start:end]) for start, end in aligned_spans(text, language(self.source)))

    def _open_sentences(self, item: Translatable) -> list[str]:
        """Return the distinct sentences that have to be translated. An answer that is also an option is one of them."""
        return list(dict.fromkeys(sentence for _, sentence in self._sentences(item) if self._is_source(sentence)))

    def _is_source(self, sentence: str) -> bool:
        """Return True if a sentence has letters of the source's script. Numbers and emoji stay as they are."""
        return language(self.source).letters(sentence) > 0

    def _rewritten(
        self, item: Translatable, translations: Mapping[str, str], pairs: tuple[SentencePair, ...]
    ) -> Translatable:
        """Return the item with its translated texts and the text of its source."""
        source, to = language(self.source), language(self.to)
        texts: dict[str, list[str]] = {}
        for name, text in self.texts(item):
            spans = aligned_spans(text, source)
            parts = {text[start:end]: translations.get(text[start:end], text[start:end]) for start, end in spans}
            texts.setdefault(name, []).append(joined(text, spans, parts, to))
        changed = {name: tuple(made) if name == "options" else made[0] for name, made in texts.items()}
        kept = {"source_language": item.source_language or self.source, "source_text": item.source_text or item.text}
        return item.model_copy(update={**changed, **kept, "sentences": pairs})

    def batches(self, key: str, sentences: Sequence[str], drugs: DrugNames) -> Iterator[SentenceBatch]:
        """Yield the sentences of an item in batches that one request can hold."""
        held: list[str] = []
        for sentence in sentences:
            if held and (len(held) == self.batch or sum(map(len, held)) + len(sentence) > MAX_BATCH_CHARACTERS):
                yield SentenceBatch.of(key, held, drugs)
                held = []
            held.append(sentence)
        if held:
            yield SentenceBatch.of(key, held, drugs)

    def drug_names(self, streams: Streams) -> DrugNames:
        """Read the user's table of drug names: its first column, and its second column with names joined by "|"."""
        names: dict[str, tuple[str, ...]] = {}
        for table in open_tables(streams.path(self.drugs)) if self.drugs else ():
            if len(table.columns) < 2:
                raise UserError(f"{table}: a table of drug names has two columns, such as 阿司匹林,aspirin")
            for _, row in table:
                term, translation = (str(row.get(column, "")).strip() for column in table.columns[:2])
                if term and translation:
                    names[term] = (*names.get(term, ()), *(each.strip() for each in translation.split("|")))
        return names


class TranslatePages(Translate, kind="build", takes="llm"):
    """Let an LLM translate pages, with their titles, sentence by sentence, and back, for people."""

    reads: ClassVar[tuple[Stream, ...]] = ("pages",)
    writes: ClassVar[Stream] = "pages"

    name: str = "translate-pages"

    def items(self, streams: Streams) -> Iterator[Translatable]:
        """Yield the pages."""
        return streams.pages()

    def texts(self, item: Translatable) -> list[tuple[str, str]]:
        """Return the title, the text and the diagnosis of a page. Diagnoses are compared with translated answers."""
        assert isinstance(item, SourcePage)
        return [("title", item.title), ("text", item.text), ("diagnosis", item.diagnosis)]


@dataclass
class TranslationTally:
    """Numbers about a translation, for the datasheet."""

    translated: int = 0
    unchanged: int = 0
    """Items without a letter in the script of the source."""
    marked: int = 0
    """Items with a marked sentence."""
    sentences: int = 0
    likeness: float = 0.0
    compared: int = 0
    marks: Counter[str] = field(default_factory=Counter)

    def add(self, pairs: Sequence[SentencePair]) -> None:
        """Count a translated item."""
        self.translated += 1
        self.marked += any(pair.marks for pair in pairs)
        self.sentences += len(pairs)
        self.marks.update(mark.partition(":")[0] for pair in pairs for mark in pair.marks)
        values = [pair.similarity for pair in pairs if pair.similarity is not None]
        self.likeness += sum(values)
        self.compared += len(values)

    def facts(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        mean = round(self.likeness / self.compared, 1) if self.compared else None
        return {
            **{"items": self.translated, "already": self.unchanged, "marked": self.marked},
            **{"sentences": self.sentences, "similarity": mean, "marks": dict(self.marks.most_common())},
        }


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
