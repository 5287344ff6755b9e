"""`POST /search`: one question to one system, and what each of its stages made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from r2med.core.cost import Cost
from r2med.server.limits import Limits
from r2med.server.refusals import HTTPError
from r2med.server.retrieve_protocol import check_text, validated
from r2med.system.system import LiveSystem, Outcome
from r2med.text.highlight import Kind, Words, best_window, matches

K = 10
TEXT = 6000
"""Characters of a passage that are sent: some documents have fifty pages."""
WIDTH = 480
"""Characters of it that are seen at once, where it matches best."""
TERMS = 30
"""Weighted terms of a feedback that are sent, the heaviest."""

Status = Literal["ok", "partial", "failed"]
EXAMPLE = {"question": "Which nerve is compressed in the carpal tunnel?", "system": "bm25", "k": K}


class SearchRequest(BaseModel):
    """A question."""

    model_config = ConfigDict(strict=True, frozen=True)

    question: str = Field(description="What to search for; nothing in it is special.")
    system: str = Field("", description="A system of GET /systems; empty: the first.")
    k: int = Field(K, description="Passages to return.")


class Passage(BaseModel):
    """One document, as far as it is shown."""

    id: str
    score: float
    text: str
    cut: bool = Field(description="Whether the document goes on after the text.")
    before: int | None = Field(None, description="Its rank before the rerankers, from 1.")
    window: tuple[int, int] = Field(description="The characters of the text that match best.")
    marks: list[tuple[int, int, Kind]] = Field(description="Words that match: from, to, whose word.")


class Turn(BaseModel):
    """One turn of a search agent."""

    text: str
    query: str = ""
    documents: list[str] = Field(default_factory=list, description="What its search found, by id.")
    notice: str = ""


class StageReport(BaseModel):
    """How one stage went, and what it took: the same where an LLM had answered the question before."""

    stage: Literal["expand", "retrieve", "rerank"]
    name: str
    status: Status = "ok"
    notices: list[str] = []
    seconds: float
    calls: int = Field(description="Calls of LLMs.")
    prompt_tokens: int
    completion_tokens: int
    texts: int = Field(description="Texts that encoders read.")
    dollars: float | None = Field(description="null where the price of a call is not known.")


class SearchResponse(BaseModel):
    """An answer. Whatever goes wrong in a stage is told here, and never hidden by a plain search."""

    system: str
    status: Status = Field(description="partial: a stage failed, and the others did without it; failed: no passages.")
    problem: str = ""
    passages: list[Passage] = []
    generated: list[str] = Field(default_factory=list, description="What an LLM wrote to search with.")
    terms: list[tuple[str, float]] = Field(default_factory=list, description="Weighted terms searched instead.")
    turns: list[Turn] = Field(default_factory=list, description="What a search agent did.")
    stages: list[StageReport] = []
    spent: float = Field(0.0, description="Dollars that this server has spent so far.")
    budget: float | None = Field(None, description="Dollars that it may spend.")


class SystemFacts(BaseModel):
    """A system that is served."""

    name: str
    asks: bool = Field(description="Whether it asks an LLM.")


class Systems(BaseModel):
    """What can be asked here."""

    dataset: str
    documents: int
    version: str
    seconds: float = Field(description="After so many an answer is given up.")
    systems: list[SystemFacts]
    questions: list[str] = Field(description="Some questions of the dataset.")


def read_question(body: bytes, systems: Sequence[LiveSystem], limits: Limits) -> tuple[SearchRequest, LiveSystem]:
    """Parse the body of a request. Raises HTTPError if it cannot be read, or names a system that is not here."""
    request = validated(SearchRequest, body, EXAMPLE)
    check_text("question", request.question, limits)
    if not 1 <= request.k <= limits.topk:
        raise HTTPError(422, f"k: it must be from 1 to {limits.topk:,}")
    for system in systems:
        if request.system in ("", system.name):
            return request, system
    raise HTTPError(422, "system: it is not one of those that are served here (GET /systems)")


def answer_of(system: LiveSystem, question: str, k: int) -> SearchResponse:
    """Answer a question."""
    outcome = system.answer(question, k)
    stages = list(_stages(system, outcome))
    [query] = outcome.expansion.queries
    trace = outcome.expansion.traces.get(query.query.id, {})
    return SearchResponse(
        system=system.name,
        status="ok" if all(stage.status == "ok" for stage in stages) else "partial",
        passages=list(_passages(system, outcome)),
        generated=list(query.generated),
        terms=sorted(query.terms, key=lambda term: (-term[1], term[0]))[:TERMS],
        turns=[_turn(turn) for turn in trace.get("turns", ())],
        stages=stages,
    )


def _stages(system: LiveSystem, outcome: Outcome) -> Iterator[StageReport]:
    declared, expansion = system.system, outcome.expansion
    if declared.expander is not None:
        status: Status = "failed" if expansion.failures else "partial" if expansion.failure_kinds else "ok"
        yield _report("expand", str(declared.expander), expansion.cost, status, expansion.notices)
    yield _report("retrieve", str(declared.retriever), outcome.searched.cost)
    for stage, reranked in zip(declared.rerankers, outcome.reranked, strict=True):
        failed = reranked.failures
        status = "ok" if not failed else "failed" if failed >= max(reranked.cost.calls, 1) else "partial"
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
        # The name stands beside them already, and the dataset is the one that is served.
        notices=[notice.partition(": ")[2] for notice in notices] if status != "ok" else [],
        seconds=cost.seconds,
        calls=cost.calls,
        prompt_tokens=cost.prompt_tokens,
        completion_tokens=cost.completion_tokens,
        texts=cost.texts,
        dollars=None if cost.unpriced else cost.dollars,
    )


def _passages(system: LiveSystem, outcome: Outcome) -> Iterator[Passage]:
    run, corpus = outcome.run, system.dataset.corpus
    [query] = outcome.expansion.queries
    words = Words.of(query.query.text, query.generated)
    words = replace(words, generated=words.generated | {term for term, _ in query.terms})
    count = int(run.found[0])
    rows = run.rows[0, :count]
    ranks = {row: rank for rank, row in enumerate(outcome.searched.run.rows[0].tolist(), 1)}
    before = [ranks.get(row) if outcome.reranked else None for row in rows.tolist()]
    scores = run.scores[0, :count].tolist()
    for document, text, score, rank in zip(corpus.ids(rows), corpus.texts(rows), scores, before, strict=True):
        shown = text[:TEXT]
        window = best_window(shown, words, WIDTH)
        yield Passage(
            id=document,
            score=score,
            text=shown,
            cut=len(text) > TEXT,
            before=rank,
            window=(window.start, window.stop),
            marks=[(match.start, match.stop, match.kind) for match in matches(shown, words)],
        )


def _turn(turn: dict[str, Any]) -> Turn:
    documents = [document["id"] for document in turn["documents"] or ()]
    return Turn(text=turn["text"], query=turn["query"], documents=documents, notice=turn["notice"])
