"""Text on any terminal: in signs that it has, and none that steers it."""

from __future__ import annotations

import codecs
import sys

_ASCII = {"→": "->", "–": "-", "—": "-", "─": "-", "━": "-", "×": "x", "·": "-", "…": "...", "≥": ">="}
"""How signs of ours are written where the output has no Unicode."""


def printable(text: str) -> str:
    """Return text that cannot steer a terminal, in signs that it has: what it has not is shown escaped."""
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, _ERRORS).decode(encoding)


def write_any_text() -> None:
    """Let output that is ASCII or cp1252 take any text: an arrow must not lose the results of a night."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ERRORS)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_ASCII.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in signs), error.end


_ERRORS = "r2med-ascii"
codecs.register_error(_ERRORS, _in_ascii)
