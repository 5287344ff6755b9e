"""Print text and JSON on any terminal or pipe, without cutting lines and without control characters."""

from __future__ import annotations

import os
import re
import sys
from typing import IO, TYPE_CHECKING, Any, cast

from r2med.foundation.pages.terminal import plain
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["console", "plain", "print_json"]

UNLIMITED = 100_000
"""Width of a pipe or a file, whose reader can scroll."""


def console() -> Console:
    """Return the console of the standard output. It is as wide as the terminal; a pipe has no limit."""
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


def print_json(value: Any) -> None:
    """Print JSON with the characters that the output can show. All others are escaped."""
    import json

    for line in json.dumps(value, indent=1, ensure_ascii=False).split("\n"):
        print(line if printable(line) == line else "".join(_escaped(sign) for sign in line))


def _escaped(sign: str) -> str:
    import json

    return sign if printable(sign) == sign else json.dumps(sign)[1:-1]
