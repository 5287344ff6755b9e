"""Write docs/reference.md (every field of every card) and the names in docs/api.md: python docs/make_reference.py."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import r2med
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.data.dataset_cards import DatasetCard
from r2med.encoders.model_cards import ModelCard
from r2med.expand.method_cards import MethodCard
from r2med.llm.llm_cards import LLMCard

PAGE = Path(__file__).with_name("reference.md")
API_PAGE = PAGE.with_name("api.md")
MARK = "<!-- Below: written by python docs/make_reference.py -->\n"
KINDS = {
    "Datasets (`datasets/`)": DatasetCard,
    "Dense models (`models/`)": ModelCard,
    "LLMs (`llms/`)": LLMCard,
    "Rerankers (`rerankers/`)": RerankerCard,
    "Methods of expansion (`methods/`)": MethodCard,
}
HEAD = """# Every field of every card

Made from the declarations by `python docs/make_reference.py`; a test checks that it is up to date.
A card is a TOML file named after what it describes, in the folder of its kind
(`CONTRIBUTING.md` in the repository has examples). A field without a default must be there.
"""


def page() -> str:
    """Return the page. Raises KeyError for a field without a meaning: write it below the field."""
    return HEAD + "".join(f"\n## {title}\n{''.join(_tables(card))}" for title, card in KINDS.items())


def _tables(card: type[BaseModel], name: str = "") -> Iterator[str]:
    notes = _notes(card)
    rows = []
    for field, declared in card.model_fields.items():
        default = "" if declared.is_required() else f"`{declared.get_default(call_default_factory=True)!r}`"
        part = isinstance(declared.default, BaseModel)
        cells = [
            f"`{field}`",
            f"`{_type(declared.annotation)}`",
            "see below" if part else default,
            notes[field],
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    heading = f"\n### `[{name}]`\n" if name else ""
    head = "| field | type | default | meaning |\n|---|---|---|---|\n"
    yield f"{heading}\n{inspect.getdoc(card)}\n\n{head}{''.join(rows)}"
    for field, declared in card.model_fields.items():
        kinds = [declared.annotation, *getattr(declared.annotation, "__args__", ())]
        for kind in kinds:
            if inspect.isclass(kind) and issubclass(kind, BaseModel):
                yield from _tables(kind, field)


def _type(annotation: object) -> str:
    if inspect.isclass(annotation):
        return annotation.__name__
    bare = re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(annotation))
    bare = re.sub(r"Annotated\[(\w+), FieldInfo\(.*?\]\)\]", r"\1", bare)
    return re.sub(r"Optional\[(.*)\]", r"\1 | None", bare)


def _notes(card: type[BaseModel]) -> dict[str, str]:
    """Return what stands below the fields of a class and of those it inherits from: field -> text."""
    notes: dict[str, str] = {}
    for each in reversed([base for base in card.__mro__ if base.__module__.startswith("r2med.")]):
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0].body  # type: ignore[attr-defined]
        for line, after in pairwise(body):
            if (
                isinstance(line, ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                notes[line.target.id] = " ".join(str(after.value.value).split())  # type: ignore[union-attr]
    return notes


def api_page() -> str:
    """Return the page of public names: what a person wrote above the mark, and below it each name with its meaning."""
    written = API_PAGE.read_text(encoding="utf-8").partition(MARK)[0]
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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    API_PAGE.write_text(api_page(), encoding="utf-8")
