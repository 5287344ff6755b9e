"""Answered questions in a trace, with the attribute names of OpenInference.

Each question of a system on a dataset is one trace. It has the spans of the system, if the system ran, and a span for
each answer of each reader. The span of an answer has what was read, the calls of the reader and those of the judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from r2med.assessment.answers.reader_prompts import ReaderQuestion
from r2med.data.dataset import Dataset
from r2med.evaluation.records.answer_record import GivenAnswer
from r2med.foundation.engine.tracing import Span, TraceFile, end_spans, item_spans, open_spans
from r2med.systems.retrieve.ranking_spans import MAX_TEXT, RETRIEVED


@dataclass
class QuestionTraces:
    """The open traces of questions. Readers ask about a question long after its system has run."""

    file: TraceFile | None
    _open: dict[tuple[str, str], dict[str, Span]] = field(default_factory=dict)

    def of(self, system: str, dataset: Dataset) -> Mapping[str, Span]:
        """Return query id -> the root span of its trace. It is opened on first use; empty if nothing is traced."""
        cell = system, dataset.name
        if cell not in self._open:
            facts = {query.id: {"r2med.dataset": dataset.name, "r2med.query.id": query.id} for query in dataset.queries}
            self._open[cell] = open_spans(system, "CHAIN", facts, self.file)
            for query in dataset.queries if self.file else ():
                self._open[cell][query.id].set_content({"input.value": query.text})
        return self._open[cell]

    def end(self, system: str, dataset: Dataset) -> None:
        """Write the root spans of a system on a dataset. Questions about which nothing was done have none."""
        end_spans(self._open.pop((system, dataset.name), {}).values())

    def close(self) -> None:
        """Write all root spans that are still open."""
        for spans in self._open.values():
            end_spans(spans.values())
        self._open.clear()


@contextmanager
def answer_spans(
    questions: Sequence[ReaderQuestion],
    reader: str,
    system: str,
    file: TraceFile | None,
    roots: Mapping[str, Span] | None = None,
) -> Iterator[dict[int, Span]]:
    """Yield number of the question to the reader -> the span of its answer. `roots` are query id -> root span."""
    facts = {
        number: {"r2med.query.id": each.query.id, "r2med.condition": each.condition}
        for number, each in enumerate(questions)
    }
    parents = {
        number: roots[each.query.id] for number, each in enumerate(questions) if roots and each.query.id in roots
    }
    with item_spans(reader, "CHAIN", facts, file, parents) as spans:
        try:
            yield spans
        finally:
            for number, span in spans.items():
                each = questions[number]
                span.name = f"{reader}, {each.condition}"
                span.set_content({"input.value": each.query.text})
                _add_passages(span, each, system if each.condition == "retrieved" else each.condition)


def _add_passages(span: Span, question: ReaderQuestion, name: str) -> None:
    """Add a span of the passages that were read."""
    if not question.read.documents:
        return
    read = Span(span.file, name, "RETRIEVER", span)
    read.started = span.first
    read.set({"r2med.query.id": question.query.id})
    read.set_content({"input.value": question.query.text})
    for place, (document, text) in enumerate(zip(question.read.documents, question.read.texts, strict=True)):
        read.set({f"{RETRIEVED}.{place}.document.id": document})
        read.set_content({f"{RETRIEVED}.{place}.document.content": text[:MAX_TEXT]})
    read.end(read.started)


def add_answers(spans: Mapping[int, Span], answers: Sequence[GivenAnswer]) -> None:
    """Add what became of each answer to its span."""
    for number, span in spans.items():
        span.set({"r2med.status": answers[number].status})
        span.set_content({"output.value": answers[number].text})
