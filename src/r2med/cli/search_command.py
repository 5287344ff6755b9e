"""`r2med search`: the passages that a system finds for a question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from r2med.cli import options as flags

if TYPE_CHECKING:
    from r2med.runtime.runtime import Runtime

LETTERS = 320
"""Letters of a passage that are shown."""


@flags.with_runtime(*flags.WEIGHTS, *flags.ASKING, "llm", "depth", "recorded", "generations")
def search(
    data: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset, or a folder with a corpus.")],
    question: Annotated[str, typer.Argument(help="What to look for, in quotes.")],
    system: Annotated[
        str, typer.Option(metavar="SYSTEM", help="What searches: bm25, 'hyde(o3-mini) → bm25 → bge-reranker@100', …")
    ] = "bm25",
    k: flags.TopK = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print whole passages as JSON.")] = False,
    *,
    runtime: Runtime,
) -> None:
    """Search a dataset's corpus with a question, and show the best passages with the words that match."""
    from r2med.cli.console import console, plain, print_json
    from r2med.cli.marked_text import LEGEND, marked
    from r2med.data import load
    from r2med.system import System
    from r2med.system.question import ask
    from r2med.text.highlight import Words

    answer = ask(System.parse(system, runtime), load(data), question, k)
    if as_json:
        from dataclasses import asdict

        print_json(asdict(answer))
        return
    output = console()
    words = Words.of(question, answer.generated)
    for text in answer.generated:
        output.print(plain("written: ", "bold") + marked(text, words, LETTERS))
    for number, passage in enumerate(answer.passages, 1):
        output.print(plain(f"{number}. {passage.id}", "bold"), plain(f"{passage.score:.4g}", "dim"))
        output.print(marked(passage.text, words, LETTERS))
    if not answer.passages:
        output.print(plain("nothing was found: no document shares a word with the question"))
    elif answer.generated and output.is_terminal:
        output.print(plain(LEGEND, "dim"))
