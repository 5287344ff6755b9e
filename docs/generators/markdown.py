"""Markdown tables, and what the declarations of fields say: used by several pages."""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel

NOTICE = "\nMade from the source by `python docs/make_reference.py`. A test checks that it is up to date.\n"
"""The last line of a page."""

_TAG = re.compile(r"</?[a-z][\w-]*>")
_CODE_WITH_BAR = re.compile(r"`([^`]*\|[^`]*)`")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    r"""Return a cell on one line. A bar in code is written as HTML, because the site would show `\|` as it is."""
    text = _CODE_WITH_BAR.sub(lambda found: f"<code>{html.escape(found[1], quote=False)}</code>", prose(text))
    return " ".join(text.replace("|", "&#124;").split())


def prose(text: str) -> str:
    """Return a text with its tags in backticks, such as `<answer>`. A browser would not show them otherwise."""
    parts = text.split("`")  # every second part is in backticks already
    parts[::2] = [_TAG.sub(r"`\g<0>`", part) for part in parts[::2]]
    return "`".join(parts)


def code(text: object) -> str:
    """Return a value in backticks; nothing for an empty text."""
    return f"`{text}`" if str(text) else ""


def field_tables(
    kind: type[Any], heading: str, nested: bool = True, known: Collection[type[Any]] = ()
) -> Iterator[str]:
    """Yield the table of a class's fields, and those of the classes that its fields hold, but for the known ones.

    Raises KeyError if a field has no docstring below it: write one.
    """
    seen: list[type[Any]] = [kind, *known]
    yield _field_table(kind, heading)
    for name, annotation in annotations(kind) if nested else ():
        for part in _parts(annotation):
            if part not in seen:
                seen.append(part)
                yield from field_tables(part, f"### `[{name}]`", known=known)


def _field_table(kind: type[Any], heading: str) -> str:
    notes = field_notes(kind)
    rows = []
    for name, annotation in annotations(kind):
        default = _default(kind, name)
        if name not in notes:
            raise KeyError(f"{kind.__name__}.{name} has no docstring below it")
        rows.append((code(name), code(type_text(annotation)), default, notes[name]))
    head = f"\n{heading}\n" if heading else ""
    return f"{head}\n{prose(inspect.getdoc(kind) or '')}\n\n" + table(("field", "type", "default", "meaning"), rows)


def annotations(kind: type[Any]) -> list[tuple[str, Any]]:
    """Return the fields of a model or a dataclass, each with its type."""
    if issubclass(kind, BaseModel):
        return [(name, field.annotation) for name, field in kind.model_fields.items()]
    return [(field.name, field.type) for field in dataclass_fields(kind)]


def _default(kind: type[Any], name: str) -> str:
    if not issubclass(kind, BaseModel):
        (field,) = [each for each in dataclass_fields(kind) if each.name == name]
        return "" if repr(field.default).startswith("<dataclasses._MISSING") else f"`{field.default!r}`"
    declared = kind.model_fields[name]
    if declared.is_required():
        return ""
    default = declared.get_default(call_default_factory=True)
    return "see below" if isinstance(default, BaseModel) or is_dataclass(default) else f"`{default!r}`"


def _parts(annotation: Any) -> Iterator[type[Any]]:
    """Yield the models and dataclasses of ours within an annotation."""
    for kind in (annotation, *get_args(annotation)):
        if inspect.isclass(kind) and kind.__module__.startswith("r2med.") and _has_fields(kind):
            yield kind
        elif kind is not annotation:
            yield from _parts(kind)


def _has_fields(kind: type[Any]) -> bool:
    return issubclass(kind, BaseModel) or is_dataclass(kind)


def type_text(annotation: object) -> str:
    """Return a type as one would type it, without modules."""
    if inspect.isclass(annotation) and not get_args(annotation):
        return annotation.__name__
    bare = re.sub(r"\b(?:\w+\.)+(?=\w)", "", str(annotation))
    bare = re.sub(r"Annotated\[(\w+), FieldInfo\(.*?\]\)\]", r"\1", bare)
    bare = re.sub(r"<class '(\w+)'>", r"\1", bare)
    return re.sub(r"Optional\[(.*)\]", r"\1 | None", bare)


def field_notes(kind: type[Any]) -> dict[str, str]:
    """Return the docstrings below the fields of a class and of those it inherits from: field -> text."""
    notes: dict[str, str] = {}
    for each in reversed([base for base in kind.__mro__ if base.__module__.startswith("r2med.")]):
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0].body  # type: ignore[attr-defined]
        for line, after in pairwise(body):
            if (
                isinstance(line, ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                notes[line.target.id] = " ".join(str(after.value.value).split())  # type: ignore[union-attr]
    return notes
