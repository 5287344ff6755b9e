"""`r2med why`: how one query of a record went, on one screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags

if TYPE_CHECKING:
    from rich.console import Console

    from r2med.evaluation.story import Story
    from r2med.runtime.runtime import Runtime

LETTERS = 480
"""Letters of a text that are shown."""
SHOWN = 3
"""Texts that are shown at this length; of further relevant passages only the beginning."""
FEWER_LETTERS = 120


@flags.with_runtime("offline")
def why(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="RECORD QUERY | SYSTEM DATASET QUERY",
            help="A record file, or a system and a dataset of --results; then the id of a judged query.",
            show_default=False,
        ),
    ],
    results: flags.Results = Path("results"),
    data: Annotated[
        str,
        typer.Option(metavar="DATASET", help="Where its dataset lies, if its name does not say.", show_default=False),
    ] = "",
    *,
    runtime: Runtime,
) -> None:
    """Show a question, what was written about it, the relevant passages, and their rank before and after each stage."""
    from r2med.cli.console import console
    from r2med.evaluation.story import explain

    _show(explain(_record(words, results), words[-1], data or None, runtime), console())


def _record(words: list[str], results: Path) -> Path:
    """Return the record file that the words before the query name."""
    from r2med.core.errors import UserError
    from r2med.core.spec import joined_words
    from r2med.evaluation.story import find_record

    if len(words) == 2:
        return Path(words[0])
    named = joined_words(words[:-2])
    if len(named) != 1:
        raise UserError("name a record and a query, or a system, a dataset and a query: r2med why bm25 demo/Biology 3")
    return find_record(named[0], words[-2], results)


def _show(story: Story, output: Console) -> None:
    from r2med.cli.console import plain
    from r2med.cli.marked_text import LEGEND, marked, shared
    from r2med.measure import HEADLINE_MEASURE
    from r2med.pages.cells import Column
    from r2med.pages.page import Table
    from r2med.pages.terminal_tables import print_table
    from r2med.text.highlight import Words

    record = story.record
    value = record.per_query[story.query.id][str(HEADLINE_MEASURE)]
    output.print(
        plain(f"{record.dataset.name} {story.query.id}", "bold"),
        plain(f"{HEADLINE_MEASURE} {100 * value:.1f} · {record.system}"),
    )
    of_relevant = Words.of(" ".join(document.text for document in story.relevant))
    output.print(plain("question: ", "bold") + marked(story.query.text, of_relevant, LETTERS))
    for text in story.generated[:SHOWN]:
        output.print(plain("written: ", "bold") + marked(text, of_relevant, LETTERS))
    for stage in record.stages:
        if kinds := stage.failed.get(story.query.id):
            output.print(plain("failed: ", "bold") + plain(f"{stage.name}, {kinds}"))
    words = Words.of(story.query.text, story.generated)
    for number, document in enumerate(story.relevant):
        letters = LETTERS if number < SHOWN else FEWER_LETTERS
        output.print(
            plain(f"relevant {document.id}, grade {document.grade}: ", "bold") + marked(document.text, words, letters)
        )
        for source, of in (("the question", ("query", "both")), ("what was written alone", ("generated",))):
            common = [word for kind in of for word in shared(document.text, words)[kind]]
            if common or of[0] == "query":
                output.print(plain(f"  shares with {source}: {', '.join(common) or 'nothing'}", "dim"))
    output.print()
    depth = record.settings.get("k", "")
    rows = [
        (document.id, *(str(ranks.get(document.id, f"> {depth}")) for ranks in story.ranks.values()))
        for document in story.relevant
    ]
    ranks = [Column(stage, "integer") for stage in story.ranks]
    print_table(Table((Column("rank after"), *ranks), rows), output, {})
    if output.is_terminal:
        output.print(plain(LEGEND, "dim"))
