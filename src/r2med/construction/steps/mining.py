"""Collect candidates for each question: chunks that a committee of systems retrieves or that the source links."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator

from r2med.construction.items import Candidate, Found, PageChunk, Rejected, SourceQuestion
from r2med.construction.sources.web_pages import saved_address
from r2med.construction.step import Step, StepWork, Streams
from r2med.construction.steps.pool_contributions import SOURCE, contributions
from r2med.data.corpus import Corpus, store_corpus
from r2med.data.dataset import Dataset, Qrels, Query
from r2med.data.problems import DocumentRow, Problems
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import split
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Words
from r2med.foundation.store import Store
from r2med.systems.system.system import System

VIEWS = {"query": "text", "answer": "answer", "reasoning": "reasoning"}
"""View -> the field of a question that holds the text to search with."""

Pool = dict[str, dict[str, list[tuple[str, str, int]]]]
"""Question -> chunk -> its proposals, each with member, view and rank."""


class Mine(Step, kind="build"):
    """Let a committee of systems propose chunks for each question, and add the chunks that the source links."""

    reads = ("questions", "chunks")
    writes = "candidates"
    version = 2

    name: str = "mine"
    committee: str = Field("bm25+medcpt+bge", description="The systems that search, joined by +.")
    views: Words = Field(
        tuple(VIEWS), description="The texts to search with: query, answer and reasoning, joined by a colon."
    )
    depth: int = Field(10, ge=1, le=10_000, description="Number of chunks that a system proposes for each view.")

    @field_validator("views")
    @classmethod
    def _known(cls, views: tuple[str, ...]) -> tuple[str, ...]:
        if not views or (unknown := [view for view in views if view not in VIEWS]):
            raise ValueError(f"{':'.join(unknown) or 'nothing'} is not a view: {', '.join(VIEWS)}")
        return views

    @field_validator("committee")
    @classmethod
    def _systems(cls, committee: str) -> str:
        members(committee, Runtime())  # an unknown system is reported before the earlier steps cost money
        return committee

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return the settings, with the full names of the systems."""
        named = [member.name for member in members(self.committee, runtime)]
        return {**super().key(streams, runtime), "committee": named}

    def run(self, streams: Streams, work: StepWork) -> Iterator[Candidate | Rejected]:
        """Yield the candidates of each question, first those with the most proposals and the best ranks."""
        questions = list(streams.questions())
        pool: Pool = defaultdict(lambda: defaultdict(list))
        for question, chunk, how in linked_chunks(questions, streams.chunks()):
            pool[question][chunk].append((SOURCE, how, 1))
        systems = members(self.committee, work.runtime)
        corpus = chunk_corpus(streams, work.runtime.store)
        for system, view in itertools.product(systems, self.views):
            self._search(system, view, questions, corpus, pool, work)
        yield from (Rejected.of(question, "no candidates") for question in questions if question.id not in pool)
        yield from _candidates(questions, pool)
        work.facts["pool"] = {
            kind: {name: asdict(each) for name, each in by_name.items()}
            for kind, by_name in contributions(_candidates(questions, pool)).items()
        }

    def _search(
        self, system: System, view: str, questions: Sequence[SourceQuestion], corpus: Corpus, pool: Pool, work: StepWork
    ) -> None:
        """Add what one system retrieves for one view. Questions without this view are skipped."""
        texts = {question.id: getattr(question, VIEWS[view]) for question in questions}
        queries = tuple(Query(name, text) for name, text in texts.items() if text.strip())
        if not queries:
            return
        dataset = Dataset("build", queries, corpus, Qrels({}))
        outcome = system.run(dataset, self.depth)
        work.cost += outcome.cost
        for question, chunks in zip(outcome.run.queries, outcome.run.id_lists(), strict=True):
            for rank, chunk in enumerate(chunks, 1):
                pool[question][chunk].append((system.name, view, rank))


def members(committee: str, runtime: Runtime) -> list[System]:
    """Return the systems of a committee. Raises UserError if it is empty, or names an unknown or repeated system."""
    systems = [System.parse(spec.strip(), runtime) for spec in split(committee, "+")]
    if len({system.name for system in systems}) < len(systems):
        raise UserError(f"mine: committee={committee} names a system twice")
    for system in systems:
        system.check_installed()
    return systems


def linked_chunks(questions: Iterable[SourceQuestion], chunks: Iterable[PageChunk]) -> Iterator[tuple[str, str, str]]:
    """Yield (question, chunk, "link" or "positive") for chunks of pages that a question's source points to."""
    linked, named = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for question in questions:
        for link in filter(None, map(normalised, question.links)):
            linked[link].add(question.id)
        for positive in question.positives:
            named[positive].add(question.id)
    for chunk in chunks:
        pages = (chunk.id, chunk.page, *chunk.copies)
        addresses = (chunk.url, saved_address(chunk.page), *chunk.copies)  # a link may lead to a page by a redirect
        by_link = {each for address in addresses for each in linked.get(normalised(address), ())}
        by_name = {each for page in pages for each in named.get(page, ())}
        for how, found in (("link", by_link), ("positive", by_name - by_link)):
            for question_id in sorted(found):
                yield question_id, chunk.id, how


def chunk_corpus(streams: Streams, store: Store) -> Corpus:
    """Write the chunks as a corpus into the store, under a key of their content, and return it."""
    path, *_ = streams.files.get("chunks") or [None]
    if path is None:
        raise UserError("mine needs chunks: read pages in an earlier step and cut them with chunk(tokens=128)")
    documents = (DocumentRow(chunk.id, chunk.text, path, line) for line, chunk in enumerate(streams.chunks(), 1))
    return store_corpus(documents, store, Problems())


def _candidates(questions: Iterable[SourceQuestion], pool: Pool) -> Iterator[Candidate]:
    for question in questions:
        proposed = pool.get(question.id, {})
        for chunk in sorted(proposed, key=lambda chunk: (-len(proposed[chunk]), _best(proposed[chunk]), chunk)):
            found = tuple(Found(member=member, view=view, rank=rank) for member, view, rank in proposed[chunk])
            yield Candidate(question=question.id, chunk=chunk, found=found)


def _best(found: Iterable[tuple[str, str, int]]) -> int:
    return min(rank for _, _, rank in found)


_EQUIVALENT_PARTS = (
    (re.compile(r"^(www|m|mobile)\."), ""),
    (re.compile(r"^([a-z-]+)\.m\.wikipedia\.org"), r"\1.wikipedia.org"),
    (re.compile(r"^dx\.doi\.org"), "doi.org"),
    (re.compile(r"^ncbi\.nlm\.nih\.gov/pmc/"), "pmc.ncbi.nlm.nih.gov/"),
    (re.compile(r"^ncbi\.nlm\.nih\.gov/pubmed/"), "pubmed.ncbi.nlm.nih.gov/"),
    (re.compile(r"(/index)?\.x?html?$"), ""),
)
"""Patterns that write one address in different ways, and their replacements."""


@lru_cache(4096)  # the chunks of a page have one address
def normalised(address: str) -> str:
    """Return an address without its scheme, its fragment and equivalent parts; empty if the address is not valid."""
    try:
        parts = urlsplit(address.strip())
        host = parts.hostname or ""
    except ValueError:  # such as http://[
        return ""
    if not host:
        return ""
    path = f"{host}{unquote(parts.path)}".rstrip("/")
    for pattern, instead in _EQUIVALENT_PARTS:
        path = pattern.sub(instead, path)
    query = unquote(parts.query).removesuffix(".html")  # wget -E adds this ending to a page of a query too
    return f"{path}?{query}" if query else path
