"""A command is made from a public function, which declares its parameters once, and a view, which shows the result.

A view takes the result of the function and, by name, any parameter of the function. Parameters that it declares itself
are options of the command too. If it returns a `Shown`, the command has `--format`, and the view may take `form`.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import typer

from r2med.cli import completion
from r2med.cli.formats import Format, show_page
from r2med.cli.help_pages import metavar
from r2med.cli.rare_flags import with_help_all
from r2med.cli.setup_flags import given_settings, setup_parameter
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.flags import OUTPUT, Argument, Flag, SetupFlags

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Page

PLAN = Flag(
    "Print what would be done, downloaded and asked, with its cost and three prompts. Do nothing.", OUTPUT, ("--plan",)
)


YES = Flag("Do not ask if it is right.", names=("--yes", "-y"))


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
    """A parameter of a function, with how it is typed."""

    name: str
    flag: Flag | SetupFlags
    annotation: Any
    default: Any
    is_variadic: bool

    @property
    def is_negated(self) -> bool:
        """True for a switch that is on by default; its flag turns it off."""
        return self.default is True


def typed_parameters(function: Callable[..., Any]) -> Iterator[TypedParameter]:
    """Yield the parameters of a function that can be typed."""
    names = _ModuleNames({**vars(builtins), **inspect.unwrap(function).__globals__})
    for name, each in inspect.signature(function).parameters.items():
        annotation = eval(each.annotation, {}, names) if isinstance(each.annotation, str) else each.annotation
        if get_origin(annotation) is Annotated:
            kind, *marks = get_args(annotation)
            for flag in (mark for mark in marks if isinstance(mark, Flag | SetupFlags)):
                is_variadic = each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
                yield TypedParameter(name, flag, kind, each.default, is_variadic)


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
    run.parameters = lambda: with_help_all(command.parameters())  # type: ignore[attr-defined]
    run.function, run.view = function, view  # type: ignore[attr-defined]
    return run


@dataclass(frozen=True)
class _GeneratedCommand:
    function: Callable[..., Any]
    view: Callable[..., Any]
    plan: Callable[[Any], Any] | None
    confirm: Callable[[Any, bool], None] | None

    @cached_property
    def declared(self) -> Sequence[TypedParameter]:
        """The parameters of the function that can be typed."""
        return tuple(typed_parameters(self.function))

    @cached_property
    def of_view(self) -> Sequence[TypedParameter]:
        """The parameters of the view that can be typed."""
        return tuple(typed_parameters(self.view))

    @property
    def has_format(self) -> bool:
        """True if the view returns a page."""
        return inspect.signature(self.view).return_annotation in (Shown, "Shown")

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters of the command: of the function, of the view, and of what commands have in common."""
        settings: list[inspect.Parameter] = []
        for each in (*self.declared, *self.of_view):
            if isinstance(each.flag, SetupFlags):
                names = each.flag.names
                helps = each.flag.helps
                from r2med.foundation.runtime.setup import Setup

                settings += [setup_parameter(name, helps.get(name, "")) for name in Setup.model_fields if name in names]
            else:
                yield _parameter(each, each.flag)
        keyword = inspect.Parameter.KEYWORD_ONLY
        if self.plan:
            yield _parameter(TypedParameter("only_plan", PLAN, bool, False, False), PLAN)
        if self.confirm:
            yield _parameter(TypedParameter("yes", YES, bool, False, False), YES)
        if self.has_format:
            yield inspect.Parameter("page_format", keyword, annotation=Format, default="text")
        yield from settings

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
            given = dict(self._given(typed))
            words = [word for each in self.declared if each.is_variadic for word in given.get(each.name, ())]
            of_function = {each.name for each in self.declared if not each.is_variadic}
            of_function |= {
                name for each in self.declared if isinstance(each.flag, SetupFlags) for name in each.flag.names
            }
            keywords = {name: value for name, value in given.items() if name in of_function}
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

    def _given(self, typed: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the arguments of the function and of the view. What was not typed is left to their defaults."""
        for each in (*self.declared, *self.of_view):
            if isinstance(each.flag, SetupFlags):
                settings = {name: typed[name] for name in each.flag.names}
                if each.is_variadic:
                    yield from given_settings(settings).items()
                else:
                    from r2med.foundation.runtime.setup import Setup

                    yield each.name, Setup(**given_settings(settings))
                continue
            value = typed[each.name]
            if value is None or value == []:
                continue
            if each.is_negated:
                value = not value
            yield each.name, each.flag.read(value) if each.flag.read else value

    def _show(self, made: Any, given: Mapping[str, Any], form: str) -> None:
        known = {**self._defaults(), **given, "form": form}
        _, *taken = inspect.signature(self.view).parameters
        shown = self.view(made, **{name: known[name] for name in taken})
        if isinstance(shown, Shown):
            show_page(shown.page, form, value=shown.value)
            if shown.fault:
                raise UserError(shown.fault)
        code = shown.code if isinstance(shown, Shown) else shown
        if code:
            raise typer.Exit(code)

    def _defaults(self) -> dict[str, Any]:
        return {each.name: () if each.is_variadic else each.default for each in (*self.declared, *self.of_view)}


def _parameter(each: TypedParameter, flag: Flag) -> inspect.Parameter:
    """Return the parameter of a command for a parameter of its function."""
    kind, is_list = _typed_kind(each, flag)
    settings: dict[str, Any] = {
        "help": flag.help,
        "metavar": flag.metavar or None if isinstance(flag, Argument) else metavar(flag, kind),
        "rich_help_panel": flag.panel or None,
        "autocompletion": getattr(completion, flag.completion) if flag.completion else None,
        "hidden": flag.is_rare,
        "min": flag.low,
        "max": flag.high,
    }
    default: Any = False if each.is_negated else each.default
    if is_list:
        kind = GenericAlias(list, kind)
    if each.is_variadic or default in (None, "", ()):
        kind, default = kind | None, None
        settings["show_default"] = False
    elif default is inspect.Parameter.empty or not flag.show_default:
        settings["show_default"] = False
    elif kind is Path:
        default = Path(default)
    if isinstance(flag, Argument):
        option = typer.Argument(**settings)
    else:
        option = typer.Option(*(flag.names or _flag_names(each, kind)), **settings)
    return inspect.Parameter(
        each.name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default
    )


def _flag_names(each: TypedParameter, kind: Any) -> tuple[str, ...]:
    name = each.name.rstrip("_").replace("_", "-")
    return (f"--without-{name}",) if each.is_negated else (f"--{name}",)


def _typed_kind(each: TypedParameter, flag: Flag) -> tuple[Any, bool]:
    """Return the type of one typed value, and True if several can be typed."""
    members = list(_members(each.annotation))
    single = [member for member in members if get_origin(member) in (None, Literal)]
    is_list = flag.is_list or each.is_variadic or any(get_origin(member) is Sequence_ for member in members)
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
        for each in get_args(annotation):
            yield from _members(each)
    elif annotation is not NoneType:
        yield annotation
