"""docs/api.md: every public name, by task. A person writes the part above the mark."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

import r2med
from generators.markdown import annotations, code, field_notes, table, type_text
from r2med.cli.app import command
from r2med.foundation.runtime.setup import flag_of

FILE = Path(__file__).parent.with_name("api.md")
MARK = "<!-- Below: written by python docs/make_reference.py -->\n"


TEN = ("load", "import_data", "run", "compare", "why", "search", "advise", "serve", "board", "audit")
"""What most people need, in the order of their work."""

SECTIONS = {
    r2med.values: "The classes of what functions return. You need their names for annotations, and to read what they "
    "wrote: `from r2med.values import Audit`.",
    r2med.extend: "What you need to write stages, models and build steps ([how](extend.md)): "
    "`from r2med.extend import Stage`.",
    r2med.agreement: "How far people or judges agree beyond chance ([which one](agreement.md)): "
    "`from r2med.agreement import gwet_ac1`.",
}
"""Modules with public names of their own, at the end of the page."""


def page() -> str:
    """Return the page of public names: what a person wrote above the mark, and below it the names by task."""
    written = FILE.read_text(encoding="utf-8").partition(MARK)[0]
    ten = table(("function", "what it does"), [(_linked(name), _first_sentence(getattr(r2med, name))) for name in TEN])
    parts = [f"## {title}\n{_entries(r2med, names)}" for title, names in groups(r2med).items()]
    for module, about in SECTIONS.items():
        names = [name for group in groups(module).values() for name in group]
        parts.append(f"## {code(module.__name__)}\n{about}\n{_entries(module, names)}")
    commands = table(("command", "function"), [(code(f"r2med {words}"), _linked(name)) for words, name in functions()])
    written = _with_block(_with_block(written, "ten functions", ten), "commands", commands)
    return written + MARK + "\n" + "\n".join(parts)


def functions() -> Iterator[tuple[str, str]]:
    """Yield the words of each command, and its function."""

    def below(each: Any, words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for word, inner in getattr(each, "commands", {}).items():
            yield from below(inner, (*words, word))
        if function := getattr(getattr(each, "callback", None), "function", None):
            yield " ".join(words), function.__name__

    return below(command(), ())


def groups(module: ModuleType) -> dict[str, list[str]]:
    """Return the public names of a module by task: functions first. The title of a group is a comment in its source."""
    found = re.findall(r"^# (.+)\nif TYPE_CHECKING:\n((?:    .+\n)+)", inspect.getsource(module), re.MULTILINE)
    names = {title: re.findall(r" as (\w+)$", block, re.MULTILINE) for title, block in found}
    assert sorted(name for group in names.values() for name in group) == module.__all__
    return {title: sorted(group, key=lambda name: (name[0].isupper(), name)) for title, group in names.items()}


def _with_block(written: str, name: str, text: str) -> str:
    """Return a written text with a new block between the two comments of this name."""
    start, end = f"<!-- {name}: written by python docs/make_reference.py -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = written.partition(start)
    after = rest.partition(end)[2]
    assert after, f"docs/api.md has no place for the {name}"
    return f"{before}{start}{text}{end}{after}"


def _linked(name: str) -> str:
    return f"[{code(f'r2med.{name}')}](#{name})"


def _entries(module: ModuleType, names: list[str]) -> str:
    return "".join(_entry(name, _public(module, name)) for name in names)


def _public(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)
    except ModuleNotFoundError:  # a bridge whose other side is not installed
        return type(name, (), {"__doc__": BRIDGES[name]})


BRIDGES = {
    "LangChainRetriever": "A system as a retriever of LangChain (extra langchain).",
    "PyTerrierRetriever": "A system as a transformer of PyTerrier (extra pyterrier).",
}


def _entry(name: str, value: Any) -> str:
    if name in BRIDGES:
        return f"\n### `{name}`\n{BRIDGES[name]}\n"
    text = _first_paragraph(value)
    more = _members(value) if inspect.isclass(value) else f"\n```text\n{_signature(name, value)}\n```\n"
    return f"\n### `{name}`\n{text}\n{more}"


def _members(kind: type[Any]) -> str:
    """Return the table of the public attributes and methods that have a meaning; nothing if there are none."""
    rows = {**_fields(kind), **_methods(kind)}
    return "\n" + table(("member", "meaning"), rows.items()) if rows else ""


def _fields(kind: type[Any]) -> dict[str, str]:
    if kind.__name__ == "Setup":
        declared = {name: (field.default, flag_of(name).help) for name, field in kind.model_fields.items()}
        return {f"`{name} = {default!r}`": meaning for name, (default, meaning) in declared.items()}
    notes = field_notes(kind)
    if not (is_dataclass(kind) or issubclass(kind, BaseModel)):
        return {code(name): meaning for name, meaning in notes.items() if not name.startswith("_")}
    public = ((name, kind) for name, kind in annotations(kind) if not name.startswith("_"))
    return {code(f"{name}: {type_text(annotation)}"): notes.get(name, "") for name, annotation in public}


def _methods(kind: type[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for base in reversed([each for each in kind.__mro__ if each.__module__.startswith("r2med.")]):
        for name, value in vars(base).items():
            text = _first_paragraph(getattr(value, "__func__", value))
            if name.startswith("_") or not text or not _is_member(value):
                continue
            found[name] = text
    return {code(_call(kind, name)): text for name, text in found.items()}


def _is_member(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, property | cached_property | classmethod | staticmethod)


def _first_paragraph(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def _first_sentence(value: Any) -> str:
    return _first_paragraph(value).partition(". ")[0].rstrip(".") + "."


def _call(kind: type[Any], name: str) -> str:
    """Return a method with the names of its arguments; an attribute is its name alone."""
    value = inspect.getattr_static(kind, name)
    if isinstance(value, property | cached_property):
        return name
    parameters = list(inspect.signature(getattr(kind, name)).parameters.values())
    shown = [str(each.replace(annotation=each.empty)) for each in parameters if each.name != "self"]
    return f"{name}({', '.join(shown)})"


class _WithoutFlags(ast.NodeTransformer):
    """Removes the declarations of flags: Annotated[int, Flag(…)] is int."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
            return node.slice.elts[0]
        return node


def _signature(name: str, value: Any) -> str:
    """Return the call of a function as its source has it: annotations as they were typed, a parameter per line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = _WithoutFlags().visit(tree.args)
    shown = [ast.unparse(each) for each in [*arguments.posonlyargs, *arguments.args]]
    for place, default in enumerate(reversed(arguments.defaults), 1):
        shown[-place] += f" = {ast.unparse(default)}"
    if arguments.vararg:
        shown.append(f"*{ast.unparse(arguments.vararg)}")
    elif arguments.kwonlyargs:
        shown.append("*")
    for each, given in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        shown.append(ast.unparse(each) + (f" = {ast.unparse(given)}" if given is not None else ""))
    if arguments.kwarg:
        shown.append(f"**{ast.unparse(arguments.kwarg)}")
    result = f" -> {ast.unparse(tree.returns)}" if tree.returns else ""
    line = f"{name}({', '.join(shown)}){result}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){result}"
