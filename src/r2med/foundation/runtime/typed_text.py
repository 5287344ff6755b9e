"""Messages as one types them: what a message says as a call in Python becomes a flag or a command.

Messages of the package name settings in Python: `Setup(dtype='float32')`, `import_tables(text='COLUMN')`,
`r2med.run('bm25', data='demo')`. On the command line they are read as `--dtype float32`, `--text COLUMN` and
`r2med run bm25 --data demo`. The value `...` means any value: it is left out.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from types import EllipsisType
from typing import TYPE_CHECKING

from r2med.foundation.core.notices import Notice, Setting
from r2med.foundation.runtime.typed_notices import as_typed as _of_settings

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Content, Page, Section

Literal = str | int | float | bool | EllipsisType | list["Literal"] | dict[str, str] | None

_FUNCTIONS = (
    "Setup|run|import_tables|import_predictions|compare|report|board|explain|advise|analyse|generate|verify|serve|"
    "example_data"
)
_CALL = re.compile(rf"(?<![\w.])(?:r2med\.\w+|{_FUNCTIONS})\(")
_COMMANDS = {"import_tables": "data import", "example_data": "data example", "explain": "why"}
"""Functions whose commands have other names."""
_FLAGS = {"llms": "--llm", "models": "--model", "overlays": "--overlay", "rerankers": "--rerank", "sheets": "--sheet"}
"""Parameters whose flags have other names; those of fields of Setup are declared there."""


def as_typed(message: str) -> str:
    """Return a message with its calls in Python as flags and commands."""
    if isinstance(message, Notice):
        return "".join(
            _of_settings(Notice(part)) if isinstance(part, Setting) else as_typed(part) for part in message.parts
        )
    pieces, start = [], 0
    for found in _CALL.finditer(message):
        if found.start() >= start and (call := _call_at(message, found.start())):
            pieces += [message[start : found.start()], _typed(call)]
            start = found.start() + len(call)
    return "".join([*pieces, message[start:]])


def page_as_typed(page: Page) -> Page:
    """Return a page whose notes name flags and commands. Its tables and texts stay as they are."""
    return replace(page, sections=[_section(each) for each in page.sections])


def _section(section: Section) -> Section:
    return replace(section, parts=[_part(each) for each in section.parts], notes=[*map(as_typed, section.notes)])


def _part(part: Content) -> Content:
    from r2med.foundation.pages.page import Note

    return replace(part, text=as_typed(part.text)) if isinstance(part, Note) else part


def _call_at(message: str, start: int) -> str:
    """Return the call in Python that begins here; empty if the text is not one with plain values."""
    for end in (found.end() for found in re.finditer(r"\)", message[start:])):
        call = message[start : start + end]
        try:
            tree = ast.parse(call, mode="eval").body
            if isinstance(tree, ast.Call):
                _ = [*map(ast.literal_eval, tree.args)], [ast.literal_eval(each.value) for each in tree.keywords]
                return call
        except (SyntaxError, ValueError):
            continue
    return ""


def _typed(text: str) -> str:
    """Return a call as one types it. A field of Setup without a flag can be set in Python only, so it stays a call."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    if not all(_flag_name(each.arg or "") for each in call.keywords):
        return text
    values = [ast.literal_eval(each) for each in call.args]
    words = [shlex.quote(str(each)) for value in values for each in (value if isinstance(value, list) else [value])]
    for each in call.keywords:
        words += _flag(each.arg or "", ast.literal_eval(each.value))
    if isinstance(call.func, ast.Attribute):
        name = call.func.attr
        words = ["r2med", _COMMANDS.get(name, name), *words]
    return " ".join(words)


def _flag(name: str, value: Literal) -> Iterator[str]:
    """Yield a flag and its value; a flag that is repeated for each of several."""
    if isinstance(value, dict):
        value = [f"{key}={path}" for key, path in value.items()]
    for each in value if isinstance(value, list) else [value]:
        if each is False:
            yield f"--without-{name}"
            continue
        yield _flag_name(name)
        if each is not True and each is not ...:
            yield shlex.quote(str(each))


def _flag_name(name: str) -> str:
    from r2med.foundation.runtime.setup import Setup

    flags = {each.name: each.metadata["flag"] for each in fields(Setup)}
    if name in flags and not flags[name].panel:
        return ""
    names: tuple[str, ...] = flags[name].names if name in flags else ()
    return _FLAGS.get(name) or (names[0] if names else f"--{name.replace('_', '-')}")
