"""A command is made from a public function, which declares its parameters once, and a view, which shows the result.

A view takes the result of the function and, by name, any parameter of the function. Parameters that it declares itself
are options of the command too. If it returns a `Shown`, the command has `--format`, and the view may take `form`.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from r2med.cli import completion
from r2med.cli.formats import Format, show_page
from r2med.cli.help_pages import HELP_ALL, metavar
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.flags import OUTPUT, Argument, Flag, SetupFlags

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page

INCOMPLETE = 1
"""Exit code of a command if a part of its work failed, or if it found what it was asked to look for."""

UNDECIDED = 3
"""Exit code of a command that cannot answer with yes or no."""


@dataclass(frozen=True)
class Shown:
    """What a command prints and how it ends."""

    page: Page
    value: Any = None
    """What JSON shows in place of the page."""
    code: int = 0
    fault: str = ""
    """An error that the command ends with after the page."""


@dataclass(frozen=True)
class TypedParameter:
    """A parameter of a function or a field of Setup, with how it is typed."""

    name: str
    flag: Flag
    annotation: Any
    default: Any
    is_variadic: bool = False
    is_setting: bool = False
    """True for a field of Setup."""
    setup: str = ""
    """The parameter of the function that takes this field in one Setup. Empty if the function takes it by keyword."""

    @property
    def is_negated(self) -> bool:
        """True for a switch that is on by default; its flag turns it off."""
        return self.default is True


ONLY_PLAN = TypedParameter(
    "only_plan",
    Flag(
        "Print what would be done, downloaded and asked, with its cost and examples of prompts. Do nothing.",
        OUTPUT,
        ("--plan",),
    ),
    bool,
    False,
)
YES = TypedParameter("yes", Flag("Do not ask if it is right.", names=("--yes", "-y")), bool, False)
PAGE_FORMAT = inspect.Parameter("page_format", inspect.Parameter.KEYWORD_ONLY, annotation=Format, default="text")


@cache
def typed_parameters(function: Callable[..., Any]) -> tuple[TypedParameter, ...]:
    """Return the parameters of a function that can be typed."""
    found: list[TypedParameter] = []
    names = _ModuleNames({**vars(builtins), **inspect.unwrap(function).__globals__})
    for name, parameter in inspect.signature(function).parameters.items():
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = eval(annotation, {}, names)
        if get_origin(annotation) is not Annotated:
            continue
        kind, *marks = get_args(annotation)
        is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for flag in marks:
            if isinstance(flag, SetupFlags):
                found += _typed_settings(flag, "" if is_variadic else name)
            elif isinstance(flag, Flag):
                found.append(TypedParameter(name, flag, kind, parameter.default, is_variadic))
    return tuple(found)


def _typed_settings(flags: SetupFlags, setup: str) -> Iterator[TypedParameter]:
    """Yield the fields of Setup that a command sets."""
    from r2med.foundation.runtime.setup import Setup, flag_of, printed_bytes

    for name, field in Setup.model_fields.items():
        if name in flags.names:
            flag, default = flag_of(name), field.default
            flag = replace(flag, help=flags.helps.get(name, flag.help))
            default = printed_bytes(default) if name == "memory" else default
            yield TypedParameter(name, flag, field.annotation, default, is_setting=True, setup=setup)


class _ModuleNames(dict[str, Any]):
    """Names of a module. A class that is imported for type checkers alone is any object."""

    def __missing__(self, name: str) -> Any:
        return Any


def generated(
    function: Callable[..., Any],
    view: Callable[..., Any],
    plan: Callable[[Any], Any] | None = None,
    confirm: Callable[[Any, bool], None] | None = None,
) -> Callable[..., None]:
    """Return the command of a public function. `plan` shows what --plan prints, if the function makes a plan.

    `confirm` is called when the plan is made, and may ask if it is right. It gets True if --yes was typed.
    """
    command = _GeneratedCommand(function, view, plan, confirm)

    def run(**typed: Any) -> None:
        command.run(typed)

    run.__name__ = function.__name__
    run.__doc__ = (inspect.getdoc(function) or "").partition("\n\n")[0]
    run.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # without options: `parameters` makes them
    run.parameters = command.parameters  # type: ignore[attr-defined]
    run.function, run.view = function, view  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class _GeneratedCommand:
    function: Callable[..., Any]
    view: Callable[..., Any]
    plan: Callable[[Any], Any] | None
    confirm: Callable[[Any, bool], None] | None

    def parameters(self) -> list[inspect.Parameter]:
        """Return the parameters of the command: of the function, of the view, and of what commands have in common."""
        typed = [*typed_parameters(self.function), *typed_parameters(self.view)]
        made = [_command_parameter(parameter) for parameter in typed if not parameter.is_setting]
        if self.plan:
            made.append(_command_parameter(ONLY_PLAN))
        if self.confirm:
            made.append(_command_parameter(YES))
        if inspect.signature(self.view).return_annotation in (Shown, "Shown"):
            made.append(PAGE_FORMAT)
        made += [_command_parameter(parameter) for parameter in typed if parameter.is_setting]
        return [*made, HELP_ALL] if any(parameter.flag.is_rare for parameter in typed) else made

    def run(self, typed: dict[str, Any]) -> None:
        """Call the function with what was typed, and show what it returns."""
        from r2med.cli.progress import shown_steps
        from r2med.foundation.net.offline import planning
        from r2med.public.call_plan import looking_at_plan

        form, is_planned = typed.pop("page_format", "text"), typed.pop("only_plan", False)
        confirm, is_right = self.confirm, typed.pop("yes", False) if self.confirm else False
        with ExitStack() as stack:
            if is_planned:
                stack.enter_context(planning())  # before addresses of other machines are named
            given = self._given(typed)
            declared = typed_parameters(self.function)
            words = [word for parameter in declared if parameter.is_variadic for word in given.get(parameter.name, ())]
            taken = {parameter.setup or parameter.name for parameter in declared if not parameter.is_variadic}
            keywords = {name: value for name, value in given.items() if name in taken}
            if is_planned and self.plan:
                from r2med.public.call_plan import seen_plan

                seen_plan(lambda plan: self._show_plan(plan, form), self.function, *words, **keywords)
                return
            if confirm:
                stack.enter_context(looking_at_plan(lambda plan: confirm(plan, is_right)))
            with shown_steps():
                made = self.function(*words, **keywords)
            self._show(made, given, form)

    def _show_plan(self, plan: Any, form: str) -> None:
        shown = self.plan(plan) if self.plan else None
        if isinstance(shown, Shown):
            show_page(shown.page, form, value=shown.value)

    def _given(self, typed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the function and of the view. What was not typed is left to their defaults."""
        from r2med.foundation.runtime.setup import Setup

        given: dict[str, Any] = {}
        setups: dict[str, dict[str, Any]] = {}
        for parameter in (*typed_parameters(self.function), *typed_parameters(self.view)):
            values = setups.setdefault(parameter.setup, {}) if parameter.setup else given
            value = typed[parameter.name]
            if value is None or value == []:
                continue
            if parameter.is_negated:
                value = not value
            values[parameter.name] = parameter.flag.read(value) if parameter.flag.read else value
        return given | {name: Setup(**settings) for name, settings in setups.items()}

    def _show(self, made: Any, given: Mapping[str, Any], form: str) -> None:
        typed = (*typed_parameters(self.function), *typed_parameters(self.view))
        defaults = {parameter.name: () if parameter.is_variadic else parameter.default for parameter in typed}
        known = {**defaults, **given, "form": form}
        _, *taken = inspect.signature(self.view).parameters
        shown = self.view(made, **{name: known[name] for name in taken})
        if isinstance(shown, Shown):
            show_page(shown.page, form, value=shown.value)
            if shown.fault:
                raise UserError(shown.fault)
        code = shown.code if isinstance(shown, Shown) else shown
        if code:
            raise typer.Exit(code)


def _command_parameter(parameter: TypedParameter) -> inspect.Parameter:
    """Return the parameter of a command for a parameter of its function."""
    flag = parameter.flag
    kind, is_list = _typed_kind(parameter)
    settings: dict[str, Any] = {
        "help": flag.help,
        "metavar": flag.metavar or None if isinstance(flag, Argument) else metavar(flag, kind),
        "rich_help_panel": flag.panel or None,
        "autocompletion": getattr(completion, flag.completion) if flag.completion else None,
        "hidden": flag.is_rare,
        "min": flag.low,
        "max": flag.high,
    }
    default: Any = False if parameter.is_negated else parameter.default
    if is_list:
        kind = GenericAlias(list, kind)
    if parameter.is_variadic or default in (None, "", ()):
        kind, default = kind | None, None
        settings["show_default"] = False
    elif default is inspect.Parameter.empty or not flag.show_default:
        settings["show_default"] = False
    elif kind is Path:
        default = Path(default)
    if isinstance(flag, Argument):
        option = typer.Argument(**settings)
    else:
        word = parameter.name.rstrip("_").replace("_", "-")
        names = flag.names or (f"--without-{word}" if parameter.is_negated else f"--{word}",)
        option = typer.Option(*names, **settings)
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default
    )


def _typed_kind(parameter: TypedParameter) -> tuple[Any, bool]:
    """Return the type of one typed value, and True if several can be typed."""
    flag = parameter.flag
    members = list(_members(parameter.annotation))
    single = [member for member in members if get_origin(member) in (None, Literal)]
    is_list = flag.is_list or parameter.is_variadic or any(get_origin(member) is Sequence_ for member in members)
    if flag.kind is not None:
        return flag.kind, is_list and get_origin(flag.kind) is None  # a pair is one value
    for member in single:
        if member in (bool, int, float) or get_origin(member) is Literal:
            return member, is_list
    names_objects = len(single) < len(members) - is_list or set(single) - {str, Path}
    return (str if names_objects or Path not in single else Path), is_list


Sequence_: Any = get_origin(Sequence[str])


def _members(annotation: Any) -> Iterator[Any]:
    """Yield the types of a union, without None."""
    if get_origin(annotation) in (Union, UnionType):
        for member in get_args(annotation):
            yield from _members(member)
    elif annotation is not NoneType:
        yield annotation
