"""docs/api.md: every public name. A person writes the part above the mark."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any

import r2med

FILE = Path(__file__).parent.with_name("api.md")
MARK = "<!-- Below: written by python docs/make_reference.py -->\n"


def page() -> str:
    """Return the page of public names: what a person wrote above the mark, and below it each name with its meaning."""
    written = FILE.read_text(encoding="utf-8").partition(MARK)[0]
    public = {name: _public(name) for name in r2med.__all__ if not name.startswith("_")}
    functions = [name for name, value in public.items() if not inspect.isclass(value)]
    classes = [name for name in public if name not in functions]
    parts = [
        f"\n## {title}\n{''.join(_entry(name, public[name]) for name in names)}"
        for title, names in (("Functions", functions), ("Values and protocols", classes))
    ]
    return written + MARK + "".join(parts)


def _public(name: str) -> Any:
    try:
        return getattr(r2med, name)
    except ModuleNotFoundError:  # a bridge whose other side is not installed
        return type(name, (), {"__doc__": BRIDGES[name]})


BRIDGES = {
    "LangChainRetriever": "A system as a retriever of LangChain (extra langchain).",
    "PyTerrierRetriever": "A system as a transformer of PyTerrier (extra pyterrier).",
}


def _entry(name: str, value: Any) -> str:
    if name in BRIDGES:
        return f"\n### `{name}`\n{BRIDGES[name]}\n"
    text = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    code = "" if inspect.isclass(value) else f"\n```text\n{_signature(name, value)}\n```\n"
    return f"\n### `{name}`\n{text}\n{code}"


def _signature(name: str, value: Any) -> str:
    """Return the call of a function as its source has it: annotations as they were typed, a parameter per line."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    arguments = tree.args
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
