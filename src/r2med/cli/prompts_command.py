"""`r2med prompts new`: a set of prompt templates of one's own to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

prompts = typer.Typer(help="Begin a set of prompt templates of your own.", no_args_is_help=True)


@prompts.callback()
def _group() -> None:
    """Begin a set of prompt templates of your own."""


@prompts.command()
def new(
    method: Annotated[str, typer.Argument(help="What the prompts are for: hyde, listwise, search-r1, …")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the set.", show_default=False)],
) -> None:
    """Write the built-in templates of a method into a folder, to be changed there."""
    from r2med.core.spec import encoded
    from r2med.prompts.prompt_sets import write_set
    from r2med.text.terminal_text import printable

    for path in write_set(method, out):
        print(printable(str(path)))
    print(printable(f"Change what you like, delete the rest; then: {method}(LLM, prompts={encoded(str(out))})"))
