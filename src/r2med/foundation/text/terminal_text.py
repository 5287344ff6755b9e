"""Make text safe for any terminal: only characters that it can show, and no control sequences."""

from __future__ import annotations

import codecs
import shlex
import sys

_ASCII = {"→": "->", "–": "-", "—": "-", "─": "-", "━": "-", "×": "x", "·": "-", "…": "...", "≥": ">="}
"""Replacements for our special characters if the output is not Unicode."""


def quoted(word: object) -> str:
    """Return a word of a printed command, in quotes if a shell would read it as something else."""
    return shlex.quote(str(word))


def printable(text: str) -> str:
    """Return text without control sequences, with escapes for the characters that the terminal cannot show."""
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, _ERRORS).decode(encoding)


def write_any_text() -> None:
    """Allow any text on ASCII or cp1252 output, because an arrow must not destroy the results of a long run."""
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
