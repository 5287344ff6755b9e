"""`--help-all`: the help page of a command with the flags that few people need."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    rare: list[Any] = [option for option in ctx.command.params if getattr(option, "hidden", False)]
    for option in rare:
        option.hidden = False
    try:
        print(ctx.get_help(), end="")  # Rich prints the page itself, and the text is empty
    finally:
        for option in rare:  # a process may show the short page next
            option.hidden = True
    raise typer.Exit


HELP_ALL = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            callback=_show_all,
            is_eager=True,
            help="Also show the options that few people need, and exit.",
        ),
    ],
    default=False,
)
