"""Replace personal data in questions or pages by placeholders: by rules, by an installed library, and by an LLM.

Rules find no names. Without a library or an LLM, the facts say that names were not looked for. The LLM gets texts in
which the rules have already replaced what they found. It answers with quotes, and only quotes that the text contains
are replaced.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, field_validator

from r2med.construction.items import IdentifiedText, Rejected, SourcePage, SourceQuestion, Stream, StreamItem
from r2med.construction.step import Step, StepWork, Streams
from r2med.construction.steps.asking import ITEMS_PER_BLOCK, AskingStep
from r2med.construction.steps.personal_data_report import SAMPLE_FILE, PersonalDataReport
from r2med.construction.steps.presidio_spans import ENTITIES, PresidioSpans, presidio_version
from r2med.construction.steps.text_pieces import piece_spans
from r2med.foundation.core.errors import UserError, unknown
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Words
from r2med.foundation.text.personal_data import (
    OTHER_LANGUAGES,
    PERSONAL_KINDS,
    PLACEHOLDER,
    RULE_KINDS,
    PersonalKind,
    PersonalSpan,
    not_looked_for,
    personal_spans,
    separated,
)
from r2med.foundation.text.placeholders import Placeholders
from r2med.models.ask.answers import LLMAnswer

PIECE_CHARACTERS = 6_000
"""Characters of a text that the LLM is asked about at once. Longer texts are asked about in pieces."""
MIN_HIGH_AGE = 90
UNCHANGED_FIELDS = frozenset("id links positives kind body_system source source_language url licence".split())
"""Fields that are not texts. Ids, addresses and names of files stay as they are."""

_LETTER = r"[^\W\u2e80-\u9fff]"
"""A letter or digit that a whole word cannot have beside it. Chinese has no spaces between words."""
AnyPart = TypeVar("AnyPart", bound=BaseModel)
Search = Callable[[str], Sequence[PersonalSpan]]


def _quotes(value: Any) -> list[tuple[str, PersonalKind]]:
    """Return quotes with their kinds. Raises ValueError or TypeError if one cannot be read, since it may matter."""
    kinds: dict[str, PersonalKind] = {kind: kind for kind in PERSONAL_KINDS}
    quotes = []
    for each in value:
        fields = dict(each)
        kind = str(fields.get("kind", "")).upper()
        if not isinstance(fields.get("quote"), str) or kind not in kinds:
            raise ValueError(f"{fields} is not a quote with a kind")
        quotes.append((str(fields["quote"]), kinds[kind]))
    return quotes


_QUOTE_SCHEMA = {
    "type": "object",
    "properties": {"quote": {"type": "string"}, "kind": {"type": "string", "enum": list(PERSONAL_KINDS)}},
    "required": ["quote", "kind"],
    "additionalProperties": False,
}


class QuotedPersonalData(LLMAnswer):
    """Quotes of personal data, each with its kind."""

    found: Annotated[
        list[tuple[str, PersonalKind]],
        BeforeValidator(_quotes),
        WithJsonSchema({"type": "array", "items": _QUOTE_SCHEMA}),
    ]


class PieceQuotes(StreamItem):
    """The quotes of one piece of a text."""

    quotes: tuple[tuple[str, PersonalKind], ...] = ()


@dataclass(frozen=True)
class TextPiece:
    """A piece of an item's texts, which the LLM is asked about."""

    item: str
    text: str


@dataclass(frozen=True)
class Cleaned:
    """An item in which personal data was replaced, and its placeholders so far."""

    item: SourceQuestion | SourcePage
    placeholders: Placeholders
    changed: bool = False

    def replaced(self, search: Search, report: PersonalDataReport) -> Cleaned:
        """Return the item with placeholders for what a search finds in all its texts."""

        def replace(name: str, text: str) -> str:
            spans = search(text) if text else ()
            for span in spans:
                placeholder = self.placeholders.of(span.kind, text[span.start : span.end])
                report.add(self.item.id, name, text, span, placeholder)
            return self.placeholders.replace(text, spans)

        new = _changed(self.item, replace, UNCHANGED_FIELDS)
        return Cleaned(new, self.placeholders, self.changed or new != self.item)


class DeidentifyingStep(AskingStep[TextPiece], kind="build", takes="llm"):
    """A step that replaces personal data in the texts of one stream."""

    template = "deidentify"
    answer = QuotedPersonalData
    version = 2
    deidentifies = True
    before: ClassVar[Stream]
    """The stream that is made from this one, so that this step must come before it."""

    kinds: Words = Field(
        tuple(kind.lower() for kind in PERSONAL_KINDS), description="Kinds of personal data that are replaced."
    )
    library: Literal["", "presidio"] = Field(
        "", description="Installed library that looks for names and addresses: presidio."
    )
    language: Literal["English", "German", "Spanish", "French", "Chinese"] = Field(
        "English", description="Language that the library reads. The rules read all five."
    )

    @field_validator("kinds")
    @classmethod
    def _known_kinds(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for kind in kinds:
            if kind.upper() not in PERSONAL_KINDS:
                raise unknown("kind of personal data", kind, [each.lower() for each in PERSONAL_KINDS])
        return tuple(kind.lower() for kind in kinds)

    def texts(self, streams: Streams) -> Iterator[SourceQuestion | SourcePage]:
        """Yield the items of the stream."""
        raise NotImplementedError

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return the settings and the version of the library, and with an LLM its key and prompt."""
        key = super().key(streams, runtime) if self.llm else Step.key(self, streams, runtime)
        return {**key, **({"library version": presidio_version()} if self.library else {})}

    def asked(self, streams: Streams) -> Iterator[TextPiece]:
        """Yield the pieces of all texts. The rules come first, so that the LLM gets almost these."""
        return itertools.chain.from_iterable(map(_pieces, self.texts(streams)))

    def calls(self, streams: Streams, runtime: Runtime) -> Needs | None:
        """Return what the LLM would be asked. Without one, nothing is asked."""
        return super().calls(streams, runtime) if self.llm else Needs()

    def not_looked_for(self) -> list[str]:
        """Return what this step does not look for, for the status and the datasheet."""
        found = set(PERSONAL_KINDS) if self.llm else set(RULE_KINDS)
        if self.library:
            found.update(ENTITIES.values())
        missing = not_looked_for({kind for kind in found if kind.lower() in self.kinds})
        if self.llm:
            return missing
        names = [f"names in languages other than {self.language}"] if self.library else []
        return [*missing, *names, OTHER_LANGUAGES]

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield the items with placeholders. An item without a usable answer of the LLM is left out."""
        if streams.files.get(self.before):
            raise UserError(f"{self.name} comes too late: in the plan, put it before the step that makes {self.before}")
        report, search = PersonalDataReport(self.not_looked_for()), self._search(work)
        cleaned = (
            Cleaned(item, Placeholders(_texts(item).values())).replaced(search, report) for item in self.texts(streams)
        )
        if self.llm:
            yield from self._asked(cleaned, streams, work, report)
        else:
            yield from (report.counted(each.item, each.changed) for each in cleaned)
        work.facts["personal data"] = report.facts()
        work.reports[SAMPLE_FILE] = report.sample()

    def _search(self, work: StepWork) -> Search:
        kinds = [kind for kind in PERSONAL_KINDS if kind.lower() in self.kinds]
        if not self.library:
            return lambda text: personal_spans(text, kinds)
        library = PresidioSpans.open(self.language)

        def search(text: str) -> Sequence[PersonalSpan]:
            found = [span for span in library.spans(text) if span.kind in kinds]
            return separated([*personal_spans(text, kinds), *found], text)

        return search

    def _asked(
        self, cleaned: Iterator[Cleaned], streams: Streams, work: StepWork, report: PersonalDataReport
    ) -> Iterator[StreamItem | Rejected]:
        """Ask the LLM about items in which rules replaced what they found."""
        work.facts["prompt"] = self.prompt(streams).text
        total = sum(1 for _ in self.texts(streams))
        begun = 0
        while block := list(itertools.islice(cleaned, ITEMS_PER_BLOCK)):
            pieces = [_pieces(each.item) for each in block]
            answers = self.about(itertools.chain.from_iterable(pieces), streams, work, total, begun)
            for each, asked in zip(block, pieces, strict=True):
                yield self._with_quotes(each, [next(answers) for _ in asked], report)
            begun += len(block)

    def _with_quotes(
        self, cleaned: Cleaned, answers: Sequence[StreamItem | Rejected], report: PersonalDataReport
    ) -> StreamItem | Rejected:
        for answer in answers:
            if isinstance(answer, Rejected):
                return Rejected.of(cleaned.item, answer.reason, answer.note)
        quotes = [quote for answer in answers if isinstance(answer, PieceQuotes) for quote in answer.quotes]
        wanted = {quote: kind for quote, kind in quotes if kind.lower() in self.kinds}
        whole = "\n".join(_texts(cleaned.item).values())
        report.not_found += sum(quote not in whole for quote, _ in quotes)
        final = cleaned.replaced(lambda text: quoted_spans(text, wanted), report)
        return report.counted(final.item, final.changed)

    def fields(self, item: TextPiece) -> Mapping[str, str]:
        """Return the text of the piece and the kinds to look for."""
        return {"text": item.text, "kinds": ", ".join(kind.upper() for kind in self.kinds)}

    def read(self, item: TextPiece, answer: QuotedPersonalData) -> PieceQuotes:
        """Return the quotes of an answer."""
        return PieceQuotes(quotes=tuple(answer.found))

    def failed(self, item: TextPiece, kind: str) -> Rejected:
        """Return a mark that the item of this piece must be left out."""
        return Rejected(key=item.item, reason="no usable answer", note=kind, item={})


class DeidentifyQuestions(DeidentifyingStep, kind="build", takes="llm"):
    """Replace dates, ages over 89, ids, telephone numbers and mail addresses in questions by placeholders. Names need a
    library or an LLM. This is no guarantee."""

    reads = ("questions",)
    writes = "questions"
    before = "candidates"

    name: str = "deidentify"

    def texts(self, streams: Streams) -> Iterator[SourceQuestion]:
        """Yield the questions."""
        return streams.questions()


class DeidentifyPages(DeidentifyingStep, kind="build", takes="llm"):
    """Replace dates, ages over 89, ids, telephone numbers and mail addresses in pages by placeholders. Names need a
    library or an LLM. This is no guarantee."""

    reads = ("pages",)
    writes = "pages"
    before = "chunks"

    name: str = "deidentify-pages"

    def texts(self, streams: Streams) -> Iterator[SourcePage]:
        """Yield the pages."""
        return streams.pages()


def quoted_spans(text: str, quotes: Mapping[str, PersonalKind]) -> list[PersonalSpan]:
    """Return the places where a text contains quotes as whole words. Ages up to 89 are left out."""
    spans = []
    for quote, kind in quotes.items():
        if PLACEHOLDER.search(quote) or not any(map(str.isalnum, quote)):
            continue
        for match in re.finditer(rf"(?<!{_LETTER}){re.escape(quote)}(?!{_LETTER})", text):
            start, end = match.span()
            if kind == "AGE":
                number = re.search(r"\d{2,3}", quote)
                if number is None or int(number[0]) < MIN_HIGH_AGE:
                    continue
                start, end = start + number.start(), start + number.end()
            spans.append(PersonalSpan(start, end, kind, "LLM"))
    return separated(spans, text)


def _texts(item: IdentifiedText) -> dict[str, str]:
    """Return all texts of an item by the name of their field, as text, options.0 or sentences.0.source."""
    texts: dict[str, str] = {}

    def collect(name: str, text: str) -> str:
        texts[name] = text
        return text

    _changed(item, collect, UNCHANGED_FIELDS)
    return texts


def _changed(part: AnyPart, change: Callable[[str, str], str], unchanged: Container[str], prefix: str = "") -> AnyPart:
    """Return an item or a part of it, with every text replaced by what `change` returns for its name and content."""
    updates = {
        name: _changed_value(f"{prefix}{name}", getattr(part, name), change)
        for name in type(part).model_fields
        if name not in unchanged
    }
    return part.model_copy(update=updates)


def _changed_value(name: str, value: Any, change: Callable[[str, str], str]) -> Any:
    if isinstance(value, str):
        return change(name, value)
    if isinstance(value, tuple):
        return tuple(_changed_value(f"{name}.{number}", each, change) for number, each in enumerate(value))
    if isinstance(value, BaseModel):
        return _changed(value, change, {"field"}, f"{name}.")
    return value


def _pieces(item: IdentifiedText) -> list[TextPiece]:
    whole = "\n".join(filter(None, _texts(item).values()))
    return [TextPiece(item.id, whole[start:end]) for start, end in piece_spans(whole, PIECE_CHARACTERS)]
