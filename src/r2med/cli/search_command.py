"""`r2med search`: show the passages that a system finds for a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.systems.system.question import SearchResult

LETTERS = 320
"""Characters of a passage that are shown."""


@flags.with_runtime(*flags.WEIGHTS, *flags.ASKING, "llm", "depth", "recorded", "generations", *flags.TRACE)
def search(
    data: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset, or a folder with a corpus.")],
    question: Annotated[str, typer.Argument(help="The question, in quotes.")],
    system: Annotated[
        str,
        typer.Option(
            metavar="SYSTEM", help="The system that searches: bm25, 'hyde(o3-mini) → bm25 → bge-reranker@100', …"
        ),
    ] = "bm25",
    k: flags.TopK = 5,
    form: Format = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Print whole passages as JSON.")] = False,
    *,
    runtime: Runtime,
) -> None:
    """Search a dataset's corpus with a question, and show the best passages with the words that match."""
    from dataclasses import asdict

    from r2med.data import load
    from r2med.systems.system import System
    from r2med.systems.system.marking import marking_language
    from r2med.systems.system.question import ask

    runtime = runtime.answering()
    parsed, dataset = System.parse(system, runtime), load(data, runtime.store)
    answer = ask(parsed, dataset, question, k)
    page = _marked_page(answer, marking_language(parsed, dataset)) if form in ("text", "html") else _table_page(answer)
    show_page(page, form, as_json, asdict(answer))


def _marked_page(answer: SearchResult, language: str) -> Page:
    """Return the passages to read, with their matching words marked."""
    from r2med.foundation.pages.marked_passages import marked_passage
    from r2med.foundation.pages.page import Content, Page, Section
    from r2med.foundation.text.highlight import Words
    from r2med.systems.system.question import NOTHING_FOUND

    words = Words.of(answer.question, answer.generated, language)
    written = [marked_passage("written:", text, words, LETTERS) for text in answer.generated]
    sections = [Section("", written)] if written else []
    for rank, passage in enumerate(answer.passages, 1):
        parts: list[Content] = [marked_passage("", passage.text, words, LETTERS)]
        sections.append(Section(f"{rank}. {passage.id}", parts, aside=f"{passage.score:.4g}"))
    if not answer.passages:
        sections.append(Section("", [NOTHING_FOUND]))
    return Page(answer.question, sections, kind="search")


def _table_page(answer: SearchResult) -> Page:
    """Return the whole passages as one table."""
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table, table_page

    columns = (Column("rank", "integer"), Column("document"), Column("score", "number", 4), Column("passage"))
    rows = [(rank, found.id, found.score, found.text) for rank, found in enumerate(answer.passages, 1)]
    return table_page(answer.question, Table(columns, rows))
