"""Let an LLM translate questions or pages sentence by sentence, translate them back, and check every sentence.

The text of the source is kept beside the translation. A sentence with a fault is asked for once more, with the fault
named. An item whose translation still has a fault is left out with the pair of sentences, or goes on with the fault
noted, so that people can look at it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, create_model, model_validator

from r2med.construction.items import Rejected, SentencePair, SourcePage, SourceQuestion, Stream, StreamItem
from r2med.construction.step import StepWork, Streams
from r2med.construction.steps.asking import ITEMS_PER_BLOCK, AskingStep
from r2med.construction.steps.sentence_batches import DrugNames, SentenceBatch, SentenceTranslations, TwoWayTranslations
from r2med.construction.translation.aligned_sentences import aligned_spans, joined
from r2med.construction.translation.languages import language
from r2med.construction.translation.translation_checks import BACK, TranslationChecks
from r2med.data.tables.table_files import open_tables
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store.file_digests import file_digest
from r2med.models.ask.answers import LLMAnswer, Text

MAX_BATCH_CHARACTERS = 1500
"""Characters of the sentences of one request. The answer must fit into the LLM's limit, and may be longer."""
MAX_NOTED_SENTENCES = 5
"""Faulty sentences that the note of a rejected item shows. The item itself has all of them."""
NO_BACK = f"{BACK}: no usable answer"

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


class Translate(AskingStep[SentenceBatch], kind="build", needs="llm"):
    """Let an LLM translate questions, with answers and options, sentence by sentence, and check each translation."""

    template: ClassVar[str] = "translate"
    answer: ClassVar[type[LLMAnswer]] = NumberedTexts
    version: ClassVar[int] = 2
    reads: ClassVar[tuple[Stream, ...]] = ("questions",)
    writes: ClassVar[Stream] = "questions"

    name: str = "translate"
    source: str = Field("Chinese", description="Language of the source. Items in another script are left unchanged.")
    to: str = Field("English", description="Language to translate into.")
    back: str = Field("", description="LLM that translates back, to compare with the source. Default: the same LLM.")
    similarity: float = Field(
        30,
        ge=0,
        le=100,
        description="Smallest chrF (0 to 100) of a sentence and its translation back. 0 translates nothing back, "
        "so that numbers, negations and other critical words are not compared.",
    )
    drugs: str = Field(
        "",
        description="Table of drug names beside the plan: a column in the source language, a column of translations.",
    )
    faulty: Literal["reject", "keep"] = Field(
        "reject", description="What happens to an item with a fault: it is left out, or goes on with the fault noted."
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
        """Return the languages, the sentences, the known terms, and a first translation with its faults."""
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

    def calls(self, streams: Streams, runtime: Runtime) -> Plan | None:
        """Return what the translations would cost. Those back are about as long as those there."""
        there = super().calls(streams, runtime)
        return there + there if there and self.similarity else there

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the translations and their checks depend on."""
        key = super().key(streams, runtime)
        if self.drugs:
            key["drug names"] = file_digest(streams.path(self.drugs), runtime.store)
        if self.similarity and self.back:
            key["back_translator"] = super(Translate, self.backwards()).key(streams, runtime)
        return key

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Translate the items, block by block, and yield them with their sentences."""
        self.announce(streams, work)
        if self.similarity and self.back:
            self.model_copy(update={"llm": self.back}).announce(streams, work)
        drugs = self.drug_names(streams)
        checks = TranslationChecks(language(self.source), language(self.to), drugs, self.similarity)
        total = sum(1 for _ in self.asked(streams)) * (1 + bool(self.similarity))
        tally, begun, items = TranslationTally(), 0, self.items(streams)
        while block := list(itertools.islice(items, ITEMS_PER_BLOCK)):
            batches = [each for item in block for each in self.batches(item.id, self._open_sentences(item), drugs)]
            made = self._both_ways(batches, streams, work, total, begun)
            begun += len(batches) * (1 + bool(self.similarity))
            failures = dict(work.failures)
            ask = partial(self._both_ways, streams=streams, work=work, total=total, begun=begun)
            self._mend(block, made, checks, tally, ask)
            work.failures = failures  # the first translation stays if the second request fails
            for item in block:
                yield self._checked(item, made, checks, tally)
        work.facts["translation"] = {"from": self.source, "to": self.to, **tally.facts()}

    def backwards(self) -> Translate:
        """Return the step that translates back."""
        return self.model_copy(update={"llm": self.back or self.llm, "source": self.to, "to": self.source})

    def _both_ways(
        self, batches: Sequence[SentenceBatch], streams: Streams, work: StepWork, total: int, begun: int
    ) -> TwoWayTranslations:
        """Ask for translations there and back. `total` and `begun` count requests, for the progress."""
        there, back = self._ask(batches, streams, work, total, begun), SentenceTranslations()
        if self.similarity:
            returned = [each.returned() for each in there.batches]
            back = self.backwards()._ask(returned, streams, work, total, begun + len(batches))
        return TwoWayTranslations(there, back)

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

    def _mend(
        self,
        block: Sequence[Translatable],
        made: TwoWayTranslations,
        checks: TranslationChecks,
        tally: TranslationTally,
        ask: Callable[[Sequence[SentenceBatch]], TwoWayTranslations],
    ) -> None:
        """Ask once more for sentences with faults, and take the new translations that have fewer faults."""
        faulty = {item.id: self._faulty(item, made, checks) for item in block if item.id not in made.there.failures}
        batches = [
            each.again(pairs) for key, pairs in faulty.items() for each in self.batches(key, [*pairs], checks.drugs)
        ]
        again = ask(batches) if batches else TwoWayTranslations()
        for key, pairs in faulty.items():
            for sentence, first in pairs.items():
                tally.again += 1
                if (target := again.there.get(key, sentence)) is None:
                    continue
                second = self._pair(first.field, sentence, target, again.back.get(key, target) or "", checks)
                if len(second.faults) < len(first.faults):
                    tally.mended += 1
                    made.put(key, second)

    def _faulty(
        self, item: Translatable, made: TwoWayTranslations, checks: TranslationChecks
    ) -> dict[str, SentencePair]:
        """Return the sentences of an item whose translation has a fault that another translation may not have."""
        pairs = self._pairs(item, made, checks)
        return {pair.source: pair for pair in pairs if set(pair.faults) - {NO_BACK}}

    def _pairs(self, item: Translatable, made: TwoWayTranslations, checks: TranslationChecks) -> Iterator[SentencePair]:
        """Yield the translated sentences of an item with the results of the checks."""
        for name, sentence in self._sentences(item):
            if (target := made.there.get(item.id, sentence)) is not None:
                yield self._pair(name, sentence, target, made.back.get(item.id, target) or "", checks)

    def _checked(
        self, item: Translatable, made: TwoWayTranslations, checks: TranslationChecks, tally: TranslationTally
    ) -> StreamItem | Rejected:
        """Return the translated item, or the item as rejected because of a fault."""
        if item.id in made.there.failures:
            return Rejected.of(item, "no usable answer", made.there.failures[item.id])
        translations = made.there.by_item.get(item.id, {})
        if not translations:
            tally.unchanged += 1
            return item
        pairs = list(self._pairs(item, made, checks))
        translated = self._rewritten(item, translations, tuple(pairs))
        tally.add(pairs)
        faulty = [pair for pair in pairs if pair.faults]
        if not faulty or self.faulty == "keep":
            return translated
        return Rejected.of(translated, faulty[0].faults[0].partition(":")[0], _noted(faulty))

    def _pair(self, name: str, source: str, target: str, back: str, checks: TranslationChecks) -> SentencePair:
        faults = checks.faults(source, target, back)
        if self.similarity and not back:
            faults = (*faults, NO_BACK)
        similarity = round(checks.likeness(source, back), 1) if back else None
        return SentencePair(field=name, source=source, target=target, back=back, similarity=similarity, faults=faults)

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


class TranslatePages(Translate, kind="build", needs="llm"):
    """Let an LLM translate pages, with their titles, sentence by sentence, and check each translation."""

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
    faulty: int = 0
    sentences: int = 0
    likeness: float = 0.0
    compared: int = 0
    again: int = 0
    """Sentences that were asked for once more because of a fault."""
    mended: int = 0
    """Number of these sentences whose second translation had fewer faults."""
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, pairs: Sequence[SentencePair]) -> None:
        """Count a translated item."""
        self.translated += 1
        self.faulty += any(pair.faults for pair in pairs)
        self.sentences += len(pairs)
        self.faults.update(fault.partition(":")[0] for pair in pairs for fault in pair.faults)
        values = [pair.similarity for pair in pairs if pair.similarity is not None]
        self.likeness += sum(values)
        self.compared += len(values)

    def facts(self) -> dict[str, Any]:
        """Return the numbers as JSON values."""
        second = {"again": self.again, "mended": self.mended} if self.again else {}
        mean = round(self.likeness / self.compared, 1) if self.compared else None
        return {
            **{"items": self.translated, "already": self.unchanged, "faulty": self.faulty},
            **{"sentences": self.sentences, "similarity": mean, "faults": dict(self.faults.most_common())},
            **second,
        }


def _has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def _noted(faulty: Sequence[SentencePair]) -> str:
    noted = [f"{', '.join(pair.faults)} [{pair.source} → {pair.target}]" for pair in faulty[:MAX_NOTED_SENTENCES]]
    more = len(faulty) - len(noted)
    return "; ".join([*noted, *([f"{more} more"] if more else [])])
