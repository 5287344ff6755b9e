"""`r2med why`: explain the score of one query of a record on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from r2med.cli import options as flags
from r2med.cli.formats import Format, show_page
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import joined_words

if TYPE_CHECKING:
    from r2med.evaluation.running.story import FoundDocument, RelevantDocument, Story
    from r2med.foundation.pages.page import Page, Table
    from r2med.foundation.runtime.runtime import Runtime
    from r2med.foundation.text.highlight import Words

LETTERS = 480
"""Characters of a text that are shown."""
SHOWN = 3
"""Relevant passages that are shown at this length. Of further ones only the beginning is shown."""
FEWER_LETTERS = 120
QUESTION = "the question"


@flags.with_runtime("offline")
def why(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="RECORD QUERY | SYSTEM DATASET QUERY",
            help="A record file, or a system and a dataset of --results; then the id or the text of a judged query.",
            show_default=False,
        ),
    ],
    results: flags.Results = Path("results"),
    data: Annotated[
        str,
        typer.Option(
            metavar="DATASET", help="The folder of its dataset. Default: found by its name.", show_default=False
        ),
    ] = "",
    form: Format = "text",
    as_json: flags.AsJSON = False,
    *,
    runtime: Runtime,
) -> None:
    """Show a question, its generated texts, the relevant passages with their ranks, and the passages found first."""
    from r2med.evaluation.running.story import explain

    typed = words[-2] if len(words) > 2 and Path(words[-2]).is_dir() else None
    story = explain(_record(words, results), words[-1], data or typed, runtime)
    show_page(_page(story), form, as_json, _value(story))


def _record(words: list[str], results: Path) -> Path:
    """Return the record file that the words before the query name."""
    from r2med.evaluation.running.story import find_record

    if len(words) == 2:
        return Path(words[0])
    named = joined_words(words[:-2])
    if len(named) != 1:
        raise UserError("name a record and a query, or a system, a dataset and a query: r2med why bm25 demo/Biology 3")
    return find_record(named[0], words[-2], results)


def _page(story: Story) -> Page:
    """Return the question, the generated texts, the relevant passages and their ranks."""
    from r2med.evaluation.measure import HEADLINE_MEASURE
    from r2med.evaluation.records.search_language import recorded_language
    from r2med.foundation.pages.marked_passages import marked_passage
    from r2med.foundation.pages.page import Content, Note, Page, Section
    from r2med.foundation.text.highlight import Words

    record, query = story.record, story.query
    language = recorded_language([record.settings])
    title = f"{record.dataset.name} {query.id}"
    value = record.per_query[query.id][str(HEADLINE_MEASURE)]
    of_relevant = Words.of(" ".join(document.text for document in story.relevant), language=language)
    words = Words.of(query.text, story.generated, language)
    parts: list[Content] = [marked_passage("question:", query.text, of_relevant, LETTERS)]
    parts += [marked_passage("written:", text, of_relevant, LETTERS) for text in story.generated[:SHOWN]]
    parts += [Note(f"failed: {name}, {kinds}", "strong") for name, kinds in _failures(story).items()]
    for number, document in enumerate(story.relevant):
        letters = LETTERS if number < SHOWN else FEWER_LETTERS
        parts.append(marked_passage(f"relevant {document.id}, grade {document.grade}:", document.text, words, letters))
        for source, common in _shared(document, words).items():
            if common or source == QUESTION:
                parts.append(Note(f"  shares with {source}: {', '.join(common) or 'nothing'}", "quiet"))
    parts += [
        marked_passage(f"found {rank}. {found.id}, {_grade(found)}:", found.text, words, FEWER_LETTERS)
        for rank, found in enumerate(story.first, 1)
    ]
    about = f"{HEADLINE_MEASURE} {100 * value:.1f} · {record.system}"
    return Page(title, [Section(title, parts, aside=about, aside_tone=""), Section("", [_ranks(story)])], kind="why")


def _shared(document: RelevantDocument, words: Words) -> dict[str, list[str]]:
    """Return the words that a document shares with the question, and those that it shares with generated texts only."""
    from r2med.foundation.pages.marked_passages import matching_words

    found = matching_words(document.text, words)
    return {QUESTION: [*found["query"], *found["both"]], "what was written alone": found["generated"]}


def _grade(found: FoundDocument) -> str:
    return "not judged" if found.grade is None else f"grade {found.grade}"


def _failures(story: Story) -> dict[str, Any]:
    """Return the stages whose calls for this query failed, each with the kinds of failure."""
    of_query = {stage.name: stage.failed.get(story.query.id) for stage in story.record.stages}
    return {name: kinds for name, kinds in of_query.items() if kinds}


def _ranks(story: Story) -> Table:
    from r2med.foundation.pages.cells import Column
    from r2med.foundation.pages.page import Table

    depth = story.record.settings.get("k", 0)
    beyond = "not found" if depth >= story.record.dataset.documents else f"> {depth}"
    rows = [(each.id, *(ranks.get(each.id, beyond) for ranks in story.ranks.values())) for each in story.relevant]
    return Table((Column("rank after"), *(Column(stage, "integer") for stage in story.ranks)), rows)


def _value(story: Story) -> dict[str, Any]:
    """Return the whole story for JSON."""
    record, query = story.record, story.query
    relevant = [
        {**vars(each), "ranks": {stage: ranks.get(each.id) for stage, ranks in story.ranks.items()}}
        for each in story.relevant
    ]
    return {
        "dataset": record.dataset.name,
        "system": record.system,
        "query": query.id,
        "question": query.text,
        "scores": dict(record.per_query[query.id]),
        "generated": list(story.generated),
        "failures": _failures(story),
        "relevant": relevant,
        "first": [vars(each) for each in story.first],
    }
