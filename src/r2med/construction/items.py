"""The items that steps of a build pass on: questions, pages, chunks, candidates and judgements, as JSON lines."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Stream = Literal["questions", "pages", "chunks", "candidates", "judgements"]


class StreamItem(BaseModel):
    """One line of a stream. Items are never changed; a step writes new ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @property
    def key(self) -> str:
        """Identifies the item in its stream."""
        raise NotImplementedError


class IdentifiedText(StreamItem):
    """An item with its own id and text."""

    id: str
    text: str

    @property
    def key(self) -> str:
        """The id of the item."""
        return self.id


class SentencePair(BaseModel):
    """A sentence, its translation and the translation back, with marks for people."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    field: str
    """The field of the item that contains the sentence, such as text, answer or options."""
    source: str
    """The sentence in the language of the source."""
    target: str
    """Its translation."""
    back: str = ""
    """The translation, translated back into the language of the source. Empty if nothing was translated back."""
    similarity: float | None = None
    """Similarity (chrF, 0 to 100) of the sentence and the translation back; None if nothing was translated back."""
    marks: tuple[str, ...] = ()
    """What people should look at, such as "number lost: 38.5"."""


class TranslatableText(IdentifiedText):
    """An item that may be a translation. It keeps the text of its source."""

    source_language: str = ""
    """Language that the item was translated from. Empty if it is not a translation."""
    source_text: str = ""
    """The text before it was translated."""
    sentences: tuple[SentencePair, ...] = ()
    """The translated sentences of all fields, each beside its source, in their order."""


class SourceQuestion(TranslatableText):
    """A question that may become a query."""

    answer: str = ""
    options: tuple[str, ...] = ()
    """The choices of an exam question, including the right one."""
    links: tuple[str, ...] = ()
    """Addresses of pages that its answer links to. Their chunks become candidates."""
    positives: tuple[str, ...] = ()
    """Ids of pages that are relevant by the structure of the source, such as cases with the same diagnosis."""
    answer_group: str = ""
    """Group of diagnoses that mean the same as the answer. Empty if answers were not grouped."""
    other_names: tuple[str, ...] = ()
    """Other names of the answer, by its group."""
    kind: str = ""
    """What the question asks for: EXM, DIA or TRT, and the kind of answer, as in DIA/disease."""
    body_system: str = ""
    original: str = ""
    """Text of the question before it was rewritten."""
    reasoning: str = ""
    """Path of reasoning from the question to its answer."""
    source: str = ""
    """Origin of the question: file and line, or an address."""
    licence: str = ""


class SourcePage(TranslatableText):
    """A whole text of a source."""

    diagnosis: str = ""
    """Diagnosis of a case report that cases with the same diagnosis are relevant to. It is not part of the text."""

    title: str = ""
    url: str = ""
    source: str = ""
    licence: str = ""


class PageChunk(IdentifiedText):
    """A part of a page. It becomes a document of the benchmark."""

    page: str
    start: int = 0
    end: int = 0
    """Position in the text of the page, in characters."""
    copies: tuple[str, ...] = ()
    """Ids and addresses of other pages that contain the same or nearly the same text."""
    title: str = ""
    url: str = ""
    source: str = ""
    licence: str = ""


class Found(BaseModel):
    """One proposal of a candidate by a member of the committee."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    member: str
    """A retriever of the committee, or "source" if the source itself links to the chunk."""
    view: str
    """The text that was searched with: query, answer or reasoning."""
    rank: int


class Candidate(StreamItem):
    """A chunk that may be evidence for a question."""

    question: str
    chunk: str
    found: tuple[Found, ...] = ()
    control: str = ""
    """Kind of a planted control, whose right answer is known. Empty for real candidates."""
    text: str = ""
    """Text of a planted control that is not a chunk of the corpus."""
    author: str = ""
    """Model that wrote this text. Empty if no LLM did."""

    @property
    def key(self) -> str:
        """Ids of the question and the chunk."""
        return f"{self.question}\t{self.chunk}"


class Judgement(StreamItem):
    """The scores that an LLM judge gives to a candidate. What people say is a `Review`."""

    question: str
    """The id of the question."""
    chunk: str
    """The id of the chunk."""
    judge: str
    """Name of the LLM."""
    relevance: int
    """How well the candidate answers the question, from 0 to 5."""
    support: int
    """How well the candidate supports the reasoning towards the answer, from 0 to 5."""
    rationale: str = ""
    """The reason that the judge gives."""
    control: str = ""

    @property
    def key(self) -> str:
        """Ids of the question, the chunk and the judge."""
        return f"{self.question}\t{self.chunk}\t{self.judge}"


NOT_READ = "unreadable"
"""Reason for rejecting a part of a source that cannot be read."""


class Rejected(BaseModel):
    """An item that a step left out, with the reason. It is stored beside the items that went on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    reason: str
    """A label to count by, such as "Too Simple"."""
    note: str = ""
    item: dict[str, object]

    @classmethod
    def of(cls, item: StreamItem, reason: str, note: str = "") -> Rejected:
        """Return an item as rejected for this reason."""
        return cls(key=item.key, reason=reason, note=note, item=item.model_dump(mode="json", exclude_defaults=True))


ITEMS: dict[Stream, type[StreamItem]] = {
    "questions": SourceQuestion,
    "pages": SourcePage,
    "chunks": PageChunk,
    "candidates": Candidate,
    "judgements": Judgement,
}
