"""`--help-all`: the help page of a command with the flags that few people need."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
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


_HELP_ALL = inspect.Parameter(
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


def with_help_all(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters of a command, with `--help-all` if a flag is rare."""
    given = list(parameters)
    return [*given, _HELP_ALL] if any(map(_is_rare, given)) else given


def _is_rare(parameter: inspect.Parameter) -> bool:
    marks: tuple[Any, ...] = getattr(parameter.annotation, "__metadata__", ())
    return any(getattr(mark, "hidden", False) for mark in marks)
