"""What flows between the steps of a build: questions, pages, chunks, candidates, judgements; a JSON line each."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Stream = Literal["questions", "pages", "chunks", "candidates", "judgements"]


class Item(BaseModel):
    """One line of a stream. Items are never changed: a step writes new ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @property
    def key(self) -> str:
        """What tells it from others of its stream."""
        raise NotImplementedError


class Question(Item):
    """A question that may become a query."""

    id: str
    text: str
    answer: str = ""
    options: tuple[str, ...] = ()
    """The choices of an exam question, the right one among them."""
    links: tuple[str, ...] = ()
    """Addresses of pages that its answer links to: the first positives."""
    positives: tuple[str, ...] = ()
    """Ids of pages that are positives by the way the source is made, as cases of the same diagnosis."""
    kind: str = ""
    """What is asked for: EXM, DIA or TRT, and the kind of answer, as in DIA/disease."""
    body_system: str = ""
    original: str = ""
    """Its text before it was rewritten."""
    reasoning: str = ""
    """The path from the question to its answer."""
    source: str = ""
    """Where it comes from: file and line, or an address."""
    licence: str = ""

    @property
    def key(self) -> str:
        """Its id."""
        return self.id


class SourcePage(Item):
    """A text of a source, whole."""

    id: str
    text: str
    title: str = ""
    url: str = ""
    source: str = ""
    licence: str = ""

    @property
    def key(self) -> str:
        """Its id."""
        return self.id


class Chunk(Item):
    """A part of a page: a document of the benchmark."""

    id: str
    text: str
    page: str
    start: int = 0
    end: int = 0
    """Where it stands in the page's text, in characters."""
    copies: tuple[str, ...] = ()
    """Ids and addresses of other pages that hold the same text, or nearly."""
    title: str = ""
    url: str = ""
    source: str = ""
    licence: str = ""

    @property
    def key(self) -> str:
        """Its id."""
        return self.id


class Found(BaseModel):
    """Who proposed a candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    member: str
    """A retriever of the committee; "source" where the source itself links to it."""
    view: str
    """What it searched with: query, answer or reasoning."""
    rank: int


class Candidate(Item):
    """A chunk that may be evidence for a question."""

    question: str
    chunk: str
    found: tuple[Found, ...] = ()
    control: str = ""
    """Why it was planted: it cannot be evidence, and shows how a judge overrates. Empty for real candidates."""
    text: str = ""
    """The text of a planted control that is no chunk of the corpus."""

    @property
    def key(self) -> str:
        """Question and chunk."""
        return f"{self.question}\t{self.chunk}"


class Judgement(Item):
    """What a judge says of a candidate."""

    question: str
    chunk: str
    judge: str
    """An LLM; what people say is a `Review`."""
    relevance: int
    """How far it answers the question, 0 to 5."""
    support: int
    """How far it supports the reasoning towards the answer, 0 to 5."""
    rationale: str = ""
    control: str = ""

    @property
    def key(self) -> str:
        """Question, chunk and judge."""
        return f"{self.question}\t{self.chunk}\t{self.judge}"


NOT_READ = "unreadable"
"""The reason of parts of a source that cannot be read."""


class Rejected(BaseModel):
    """An item that a step left out, and why: kept beside what went on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    reason: str
    """A label that can be counted, such as "Too Simple"."""
    note: str = ""
    item: dict[str, object]

    @classmethod
    def of(cls, item: Item, reason: str, note: str = "") -> Rejected:
        """Return an item as left out."""
        return cls(key=item.key, reason=reason, note=note, item=item.model_dump(mode="json", exclude_defaults=True))


ITEMS: dict[Stream, type[Item]] = {
    "questions": Question,
    "pages": SourcePage,
    "chunks": Chunk,
    "candidates": Candidate,
    "judgements": Judgement,
}
