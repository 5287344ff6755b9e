"""The protocol of `POST /search`: one question to one system, its passages, and a report of each stage."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import ForeignCodeError, UserError
from r2med.foundation.text.highlight import Kind, Words, best_window, matches
from r2med.server import limits
from r2med.server.answer_pool import AnswerPool
from r2med.server.refusals import HTTPError
from r2med.server.retrieve_protocol import check_text, validated
from r2med.systems.system.marking import marking_language
from r2med.systems.system.outcome import Outcome
from r2med.systems.system.question import NOTHING_FOUND
from r2med.systems.system.system import LiveSystem

log = logging.getLogger("r2med")

K = 10
TEXT = 6000
"""Maximum number of characters of a passage in an answer. Some documents have fifty pages."""
WIDTH = 480
"""Number of characters of the best matching window, which the page shows first."""
TERMS = 30
"""Maximum number of weighted terms in an answer. The terms with the highest weights are sent."""

Status = Literal["ok", "partial", "failed"]
EXAMPLE = {"question": "Which nerve is compressed in the carpal tunnel?", "system": "bm25", "k": K}


class SearchRequest(BaseModel):
    """The request: a question for a system."""

    model_config = ConfigDict(strict=True, frozen=True)

    question: str = Field(description="The text to search for. No character has a special meaning.")
    system: str = Field("", description="The name of a system of GET /systems. Empty means the first.")
    k: int = Field(K, description="Number of passages to return.")


class TextWindow(BaseModel):
    """A part of a text, in characters."""

    start: int
    stop: int


class MarkedWord(TextWindow):
    """A word of a text that matches."""

    kind: Kind = Field(description="Source of the word: the query, a generated text, or both.")


class WeightedTerm(BaseModel):
    """A term of the search with its weight."""

    term: str
    weight: float


class FoundPassage(BaseModel):
    """One document of an answer, with the part of its text that is shown."""

    id: str
    score: float
    text: str
    cut: bool = Field(description="True if the document is longer than the text.")
    before: int | None = Field(None, description="The rank before the rerankers, from 1.")
    window: TextWindow = Field(description="The part of the text that matches best.")
    marks: list[MarkedWord] = Field(description="Matching words.")


class ReportedTurn(BaseModel):
    """One turn of a search agent."""

    text: str
    query: str = ""
    documents: list[str] = Field(default_factory=list, description="Ids of the documents that its search found.")
    notice: str = ""


class StageReport(BaseModel):
    """The status and the cost of one stage. The cost is the same if the LLM had answered the question before."""

    stage: Literal["expand", "retrieve", "rerank"]
    name: str
    status: Status = "ok"
    notices: list[str] = []
    seconds: float
    calls: int = Field(description="Number of LLM calls.")
    prompt_tokens: int
    completion_tokens: int
    texts: int = Field(description="Number of texts that encoders read.")
    dollars: float | None = Field(description="The price in dollars. null if the price of a call is not known.")


class SearchResponse(BaseModel):
    """The answer to a question. Failures of stages are always reported here."""

    system: str
    status: Status = Field(description="partial: the search ran without a failed stage. failed: there are no passages.")
    problem: str = Field("", description="Why there are no passages, in one line.")
    passages: list[FoundPassage] = []
    generated: list[str] = Field(default_factory=list, description="Texts that an LLM wrote for the search.")
    terms: list[WeightedTerm] = Field(default_factory=list, description="Weighted terms of the search.")
    turns: list[ReportedTurn] = Field(default_factory=list, description="The turns of a search agent.")
    stages: list[StageReport] = []
    spent: float = Field(0.0, description="Dollars that this server has spent so far.")
    budget: float | None = Field(None, description="Maximum dollars that this server may spend.")


class SystemFacts(BaseModel):
    """A system that is served."""

    name: str
    asks: bool = Field(description="True if the system asks an LLM.")


class Systems(BaseModel):
    """The dataset and the systems that are served."""

    dataset: str
    documents: int
    version: str
    seconds: float = Field(description="Time limit of an answer in seconds.")
    systems: list[SystemFacts]
    questions: list[str] = Field(description="Some questions of the dataset.")


def read_question(body: bytes, systems: Sequence[LiveSystem]) -> tuple[SearchRequest, LiveSystem]:
    """Parse the body of a request. Raises HTTPError if it cannot be read or names an unknown system."""
    request = validated(SearchRequest, body, EXAMPLE)
    check_text("question", request.question)
    if not 1 <= request.k <= limits.MAX_TOPK:
        raise HTTPError(422, f"k: it must be from 1 to {limits.MAX_TOPK:,}")
    if (system := find_system(systems, request.system)) is None:
        raise HTTPError(422, "system: this server has no such system (GET /systems lists them)")
    return request, system


def find_system(systems: Sequence[LiveSystem], name: str) -> LiveSystem | None:
    """Return the system of a name, or the first one if the name is empty."""
    return next((system for system in systems if name in ("", system.name)), None)


async def answered(pool: AnswerPool, system: LiveSystem, question: str, k: int) -> SearchResponse:
    """Return the answer of a system. If the system fails, the answer has one line with the reason."""
    try:
        return await pool.run(lambda: answer_of(system, question, k), limits.ANSWER_SECONDS)
    except TimeoutError:
        problem = f"no answer within {limits.ANSWER_SECONDS:g} seconds"
    except HTTPError:
        raise
    except Exception as error:
        if isinstance(error, UserError) and not isinstance(error, ForeignCodeError):
            problem = str(error)
        else:  # the reason may name files and models, so only the log has it
            log.warning("an answer failed: %s: %s", type(error).__name__, error)
            problem = "the search failed; the server's log says why"
    return SearchResponse(system=system.name, status="failed", problem=problem)


def answer_of(system: LiveSystem, question: str, k: int) -> SearchResponse:
    """Answer a question with a system."""
    outcome = system.answer(question, k)
    stages = list(_stages(system, outcome))
    [query] = outcome.expansion.queries
    traces = outcome.traces.get(query.query.id, [])
    turns = [turn for trace in (traces if isinstance(traces, list) else [traces]) for turn in trace["turns"]]
    passages = list(_passages(system, outcome))
    return SearchResponse(
        system=system.name,
        status="ok" if all(stage.status == "ok" for stage in stages) else "partial",
        problem="" if passages else NOTHING_FOUND,
        passages=passages,
        generated=list(outcome.generated.get(query.query.id, ())),
        terms=[
            WeightedTerm(term=term, weight=weight)
            for term, weight in sorted(query.terms, key=lambda each: (-each[1], each[0]))[:TERMS]
        ],
        turns=list(map(_turn, turns)),
        stages=stages,
    )


def _stages(system: LiveSystem, outcome: Outcome) -> Iterator[StageReport]:
    declared, expansion = system.system, outcome.expansion
    if declared.expander is not None:
        status: Status = "failed" if expansion.failures else "partial" if expansion.failure_kinds else "ok"
        yield _report("expand", str(declared.expander), expansion.cost, status, expansion.notices)
    inside = outcome.searched.report
    status = "failed" if 0 < inside.asked <= inside.failures else "partial" if inside.failure_kinds else "ok"
    yield _report("retrieve", str(declared.retriever), outcome.searched.cost, status, inside.notices)
    for stage, reranked in zip(declared.rerankers, outcome.reranked, strict=True):
        failed = reranked.failures
        status = "ok" if not failed else "failed" if failed >= max(reranked.asked, 1) else "partial"
        yield _report("rerank", str(stage), reranked.cost, status, reranked.notices)


def _report(
    stage: Literal["expand", "retrieve", "rerank"],
    name: str,
    cost: Cost,
    status: Status = "ok",
    notices: Sequence[str] = (),
) -> StageReport:
    return StageReport(
        stage=stage,
        name=name,
        status=status,
        # A notice begins with the name of the stage, which the report has already.
        notices=[notice.partition(": ")[2] for notice in notices] if status != "ok" else [],
        seconds=cost.seconds,
        calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        texts=cost.texts,
        dollars=None if cost.unpriced else cost.dollars,
    )


def _passages(system: LiveSystem, outcome: Outcome) -> Iterator[FoundPassage]:
    run, corpus = outcome.run, system.dataset.corpus
    [query] = outcome.expansion.queries
    language = marking_language(system.system, system.dataset)
    words = Words.of(query.query.text, query.generated, language)
    words = replace(words, generated=words.generated | {term for term, _ in query.terms})
    count = int(run.found[0])
    rows = run.rows[0, :count]
    ranks = {row: rank for rank, row in enumerate(outcome.searched.run.rows[0].tolist(), 1)}
    before = [ranks.get(row) if outcome.reranked else None for row in rows.tolist()]
    scores = run.scores[0, :count].tolist()
    for document, text, score, rank in zip(corpus.ids(rows), corpus.texts(rows), scores, before, strict=True):
        shown = text[:TEXT]
        window = best_window(shown, words, WIDTH)
        yield FoundPassage(
            id=document,
            score=score,
            text=shown,
            cut=len(text) > TEXT,
            before=rank,
            window=TextWindow(start=window.start, stop=window.stop),
            marks=[MarkedWord(start=match.start, stop=match.stop, kind=match.kind) for match in matches(shown, words)],
        )


def _turn(turn: dict[str, Any]) -> ReportedTurn:
    documents = [document["id"] for document in turn["documents"] or ()]
    return ReportedTurn(text=turn["text"], query=turn["query"], documents=documents, notice=turn["notice"])
