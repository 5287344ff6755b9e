"""Notices: texts for users in which settings and commands are values.

In Python, `Setting("Setup", dtype="float32")` reads `Setup(dtype='float32')` and `Command("run", "bm25", data="demo")`
reads `r2med.run('bm25', data='demo')`. A command line shows them as flags and commands
(`foundation/runtime/typed_notices.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import EllipsisType

Word = str | int | float | bool | EllipsisType
Value = Word | list[str] | dict[str, str]

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, init=False)
class Setting:
    """Settings of `Setup` or of a function of the public API. The value `...` means any value."""

    function: str
    words: tuple[Word | list[str], ...]
    settings: dict[str, Value]

    def __init__(self, function: str, /, **settings: Value) -> None:
        self.__dict__.update(function=function, words=(), settings=settings)

    def __str__(self) -> str:
        shown = [*map(_shown, self.words), *(f"{name}={_shown(value)}" for name, value in self.settings.items())]
        return f"{self.function}({', '.join(shown)})"


class Command(Setting):
    """A call of a function of the public API, which the command of the same purpose makes on a command line."""

    def __init__(self, function: str, /, *words: Word | list[str], **settings: Value) -> None:
        super().__init__(function, **settings)
        self.__dict__["words"] = words

    def __str__(self) -> str:
        return f"r2med.{super().__str__()}"


def _shown(value: Value) -> str:
    return "..." if value is ... else repr(value)


class Notice(str):
    """A text of parts: texts, settings, commands, other notices and errors. As a `str` it is the text in Python.

    Every run of white space in its texts becomes one space, so that a notice is one line.
    """

    parts: tuple[str | Setting, ...]

    def __new__(cls, *parts: object) -> Notice:
        """Return a notice. Notices among the parts are taken apart, so that their settings stay values."""
        flat = tuple(_flat(parts))
        notice = super().__new__(cls, "".join(map(str, flat)))
        notice.parts = flat
        return notice

    def __reduce__(self) -> tuple[type[Notice], tuple[str | Setting, ...]]:
        return Notice, self.parts

    def __str__(self) -> str:
        return self  # also for str(error), so that the settings stay values

    def stripped(self) -> Notice:
        """Return the notice without white space at its ends."""
        parts = list(self.parts)
        if parts and isinstance(parts[0], str):
            parts[0] = parts[0].lstrip()
        if parts and isinstance(parts[-1], str):
            parts[-1] = parts[-1].rstrip()
        return Notice(*parts)


def joined(separator: str, parts: Iterable[object]) -> Notice:
    """Return one notice of several, as `str.join` does for texts."""
    pieces = [piece for part in parts for piece in (separator, part)]
    return Notice(*pieces[1:])


def _flat(parts: Iterable[object]) -> Iterator[str | Setting]:
    """Yield the texts and settings of parts. Texts between two settings become one."""
    text = ""
    for part in parts:
        whole = part if isinstance(part, Setting) else str(part)
        for each in whole.parts if isinstance(whole, Notice) else [whole]:
            if isinstance(each, str):
                text += each
                continue
            if text:
                yield _SPACE.sub(" ", text)
            yield each
            text = ""
    if text:
        yield _SPACE.sub(" ", text)
