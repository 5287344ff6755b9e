"""`r2med prompts new`: start a set of prompt templates of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from r2med.core.spec import encoded
from r2med.text.terminal_text import printable

prompts = typer.Typer(help="Start a set of prompt templates of your own.", no_args_is_help=True)


@prompts.callback()
def _group() -> None:
    """Start a set of prompt templates of your own."""


@prompts.command()
def new(
    method: Annotated[str, typer.Argument(help="The method that uses the prompts: hyde, listwise, search-r1, ….")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder of the set.", show_default=False)],
) -> None:
    """Write the built-in templates of a method into a folder, where you can change them."""
    from r2med.prompts.prompt_sets import write_set

    for path in write_set(method, out):
        print(printable(str(path)))
    print(printable(f"Change what you like, delete the rest; then: {method}(LLM, prompts={encoded(str(out))})"))
