"""Streams of a build made by hand, and steps that ask a scripted LLM."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from r2med.construction.items import Candidate, Found, PageChunk, Rejected, SourceQuestion, Stream, StreamItem
from r2med.construction.step import Step, StepWork, Streams
from r2med.construction.steps import asking
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.llm_cards import LLMCard
from support.scripted_chat import Reply, ScriptedChat

QUESTIONS = [
    SourceQuestion(
        id="q1", text="A child with fever and a strawberry tongue?", answer="Kawasaki disease", reasoning="Fever."
    ),
    SourceQuestion(id="q2", text="A child with fever and Koplik spots?", answer="Measles", reasoning="Spots."),
    SourceQuestion(id="q3", text="Polyuria after a head injury?", answer="Diabetes insipidus", reasoning="ADH."),
]
CHUNKS = [
    PageChunk(id="c1", text="Kawasaki disease inflames the vessels of children.", page="p1", title="Vessels"),
    PageChunk(
        id="c2", text="Measles begins with cough, then Koplik spots.", page="p2", url="https://example.org/measles"
    ),
    PageChunk(id="c3", text="Diabetes insipidus follows an injury of the pituitary.", page="p3", source="book.jsonl:3"),
    *(PageChunk(id=f"c{n}", text=f"Text number {n} is about bones. " * (n - 3), page=f"p{n}") for n in range(4, 14)),
]
CANDIDATES = [
    Candidate(question=f"q{n}", chunk=f"c{n}", found=(Found(member="bm25", view="answer", rank=1),)) for n in (1, 2, 3)
]


def streams(folder: Path, questions=QUESTIONS, chunks=CHUNKS, candidates=CANDIDATES, judgements=()) -> Streams:
    """Return streams of these items, in files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    items: dict[str, Sequence[StreamItem]]
    items = {"questions": questions, "chunks": chunks, "candidates": candidates, "judgements": judgements}
    for name, these in items.items():
        files[name] = (folder / f"{name}.jsonl",)
        files[name][0].write_text("".join(item.model_dump_json(exclude_defaults=True) + "\n" for item in these))
    return Streams(files, folder)  # type: ignore[arg-type]


def asked_of(reply: Reply, monkeypatch: pytest.MonkeyPatch) -> ScriptedChat:
    """Let every step ask a scripted LLM, and return it."""
    llm = ScriptedChat(reply)
    llm.is_local = True  # type: ignore[attr-defined]

    def opened(card: LLMCard, runtime: Runtime) -> ScriptedChat:
        llm.card = card  # type: ignore[attr-defined]
        return llm

    monkeypatch.setattr(asking, "open_chat", opened)
    return llm


def run_step(step: Step, given: Streams, folder: Path) -> tuple[list[StreamItem], list[Rejected], StepWork]:
    """Return what a step lets pass, what it leaves out, and the work."""
    done = StepWork(Runtime(store=Store(folder / "store"), base_url="http://127.0.0.1:9"))
    made = list(step.run(given, done))
    kept = [item for item in made if isinstance(item, StreamItem)]
    return kept, [item for item in made if isinstance(item, Rejected)], done


class _Given(Step, kind="build"):
    """A step that writes what a test has at hand."""

    items: ClassVar[Sequence[StreamItem]]

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        yield from self.items


class GivenQuestions(_Given, kind="build"):
    name: str = "given-questions"
    writes: ClassVar[Stream] = "questions"
    items: ClassVar[Sequence[StreamItem]] = QUESTIONS


class GivenChunks(_Given, kind="build"):
    name: str = "given-chunks"
    writes: ClassVar[Stream] = "chunks"
    items: ClassVar[Sequence[StreamItem]] = CHUNKS


class GivenCandidates(_Given, kind="build"):
    name: str = "given-candidates"
    writes: ClassVar[Stream] = "candidates"
    items: ClassVar[Sequence[StreamItem]] = CANDIDATES
