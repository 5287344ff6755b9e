"""What is printed for a person: tables and JSON on any terminal or pipe, never cut, never steered by what they show."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from r2med.text.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.table import Table
    from rich.text import Text

UNLIMITED = 100_000
"""Columns of a pipe or a file: whoever reads it can scroll."""


def console() -> Console:
    """Return the console of the standard output, as wide as the terminal; a pipe is as wide as one likes."""
    from rich.console import Console

    limited = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    if limited:
        return Console(highlight=False)
    # Rich fills the last column of a table with spaces, up to its longest cell.
    return Console(highlight=False, width=UNLIMITED, file=cast("IO[str]", _WithoutPadding(sys.stdout)))


class _WithoutPadding:
    """A stream without spaces at the ends of lines."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text of whole lines."""
        return self._stream.write(re.sub(r" +$", "", text, flags=re.MULTILINE))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def plain(text: object, style: str = "") -> Text:
    """Return text as it is: no markup, no control characters."""
    from rich.text import Text

    return Text(printable(str(text)), style=style)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = (), whole: Sequence[str] = ()
) -> Table:
    """Return a table: columns of `numbers` stand to the right, they and those of `whole` are neither folded nor cut."""
    made = empty_table()
    for head in heads:
        justify: JustifyMethod = "right" if head in numbers else "left"
        made.add_column(plain(head), justify=justify, no_wrap=head in (*numbers, *whole), overflow="fold")
    for row in rows:
        made.add_row(*map(plain, row))
    return made


def empty_table() -> Table:
    """Return a table without columns, in the style of all tables."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)


def print_json(value: Any) -> None:
    """Print JSON with the letters of all languages where the output has them; the rest is escaped as JSON does it."""
    import json

    for line in json.dumps(value, indent=1, ensure_ascii=False).split("\n"):
        print(line if printable(line) == line else "".join(_escaped(sign) for sign in line))


def _escaped(sign: str) -> str:
    import json

    return sign if printable(sign) == sign else json.dumps(sign)[1:-1]
