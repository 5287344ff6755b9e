"""Notices as one types them: settings as flags, and calls in Python as commands of the command line.

A command line shows `Setup(dtype='float32')`, `import_data(text='COLUMN')` and `r2med.run('bm25', data='demo')` as
`--dtype float32`, `--text COLUMN` and `r2med run bm25 --data demo`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from r2med.foundation.core.notices import Command, Notice, Setting, Value
from r2med.foundation.runtime.setup import Setup

if TYPE_CHECKING:
    from r2med.foundation.pages.page import Content, Page, Section

GROUPS = ("data", "records", "build", "review", "prompts", "cache")
"""Groups of commands: `r2med data check` is `r2med.check_data`."""
FLAGS = {"llms": "--llm", "models": "--model", "overlays": "--overlay", "rerankers": "--rerank", "sheets": "--sheet"}
"""Parameters whose flags have other names; those of fields of Setup are declared there."""


def as_typed(text: str) -> str:
    """Return a text with the settings of a notice as flags, and its commands as one types them."""
    if not isinstance(text, Notice):
        return text
    return "".join(_typed(part) if isinstance(part, Setting) else part for part in text.parts)


def page_as_typed(page: Page) -> Page:
    """Return a page whose sentences name flags and commands. The cells of its tables stay as they are."""
    return replace(page, sections=[_section(each) for each in page.sections])


def _section(section: Section) -> Section:
    parts, notes = map(_part, section.parts), map(as_typed, section.notes)
    return replace(section, parts=[*parts], lead=as_typed(section.lead), notes=[*notes])


def _part(part: Content) -> Content:
    from r2med.foundation.pages.page import Note, Table

    if isinstance(part, Note):
        return replace(part, text=as_typed(part.text))
    return replace(part, note=as_typed(part.note)) if isinstance(part, Table) else part


def _typed(setting: Setting) -> str:
    """Return a setting as one types it. A field of Setup without a flag is set in Python only, so it stays a call."""
    if not all(map(flag_name, setting.settings)):
        return str(setting)
    words = ["r2med", command_words(setting.function)] if isinstance(setting, Command) else []
    for given in setting.words:
        words += [shlex.quote(str(each)) for each in (given if isinstance(given, list) else [given])]
    for name, value in setting.settings.items():
        words += _flag(name, value)
    return " ".join(words)


def command_words(function: str) -> str:
    """Return the words of the command of a public function."""
    verb, _, group = function.rpartition("_")
    if verb and group in GROUPS:
        return f"{group} {verb}"
    return function.rstrip("_").replace("_", "-")


def _flag(name: str, value: Value) -> Iterator[str]:
    """Yield a flag and its value. A flag of several values is repeated for each of them."""
    if isinstance(value, dict):
        value = [f"{key}={path}" for key, path in value.items()]
    for each in value if isinstance(value, list) else [value]:
        if each is False:
            yield f"--without-{name}"
            continue
        yield flag_name(name)
        if each is not True and each is not ...:
            yield shlex.quote(str(each))


def flag_name(name: str) -> str:
    """Return the flag of a setting; empty if it has none."""
    flags = {each.name: each.metadata["flag"] for each in fields(Setup)}
    if name in flags and not flags[name].panel:
        return ""
    names: tuple[str, ...] = flags[name].names if name in flags else ()
    return FLAGS.get(name) or (names[0] if names else f"--{name.replace('_', '-')}")
