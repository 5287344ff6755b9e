"""Help pages without the types of Python: `--fresh` instead of `--fresh <bool>`, NAME instead of `<list[str]>`.

Flags that few people need are on the page of `--help-all` only."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from r2med.foundation.core.flags import Flag

METAVARS = {int: "NUMBER", float: "NUMBER", Path: "PATH", str: "TEXT"}


def metavar(flag: Flag, kind: Any) -> str | None:
    """Return the word for a value on help pages. None leaves it to Typer, which prints the words of a closed set."""
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    return flag.metavar or METAVARS.get(kind)


class _WithoutTypes:
    """A command or a group whose help page has no types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, `--help` among them, as the help page shows them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of Typer's class beside this one
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                parameter.display_type_rich = _no_type  # newer versions of Typer show it beside the name
            elif parameter.is_flag:
                parameter.metavar = ""
        return parameters


def _no_type(ctx: Any) -> None:
    return None


class _Command(_WithoutTypes, TyperCommand):
    """A command whose options are made when they are first read: the list of all commands shows those of none."""

    _is_late = True

    @property
    def params(self) -> list[Any]:
        """The options and arguments of the command."""
        function: Any = getattr(self.callback, "__wrapped__", None)
        if self._is_late and hasattr(function, "parameters"):
            self._is_late = False
            function.__signature__ = inspect.Signature(function.parameters())
            alone = typer.Typer(add_completion=False)
            alone.command()(function)
            made = typer.main.get_command(alone)
            self._params, self.callback = made.params, made.callback
        return self._params

    @params.setter
    def params(self, params: list[Any]) -> None:
        self._params = params


class _Group(_WithoutTypes, TyperGroup):
    pass


class Application(typer.Typer):
    """Commands whose help pages have no types of Python."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=_Group, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Any:
        """Return the decorator that adds a command."""
        return super().command(name, cls=_Command, **settings)


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
