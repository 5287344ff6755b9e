"""The encoding of a file of text: UTF-8, UTF-16 with its mark, or the one that the user names. Nothing is guessed."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from shlex import quote

from r2med.foundation.core.errors import UserError

_NOT_FOR_FILES = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"})
_WORD_END = re.compile(rb'[^\s,;|"]*$')
_WORD_START = re.compile(rb'[^\s,;|"]*')
_TWO_BYTES = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_HIGH = re.compile(rb"[\x80-\xff]")


def text_encoding(path: Path, given: str = "") -> str:
    """Return the encoding of a file. `given` is what the user said about files that are not UTF-8.

    Raises UserError if the file cannot be decoded. The error shows a word as it would read in Windows-1252, the usual
    encoding of a spreadsheet, so that the user sees if that is the right one.
    """
    named = _known(given) if given else ""
    with path.open("rb") as file:
        head = file.read(4096)
    marked = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    own = "utf-16" if marked else "utf-8-sig"
    has_zeros = not marked and b"\0" in head
    line, word = _first_fault(path, own)
    # One of several files may be UTF-8, which no other encoding looks like, except those that write ASCII only.
    if not line and not has_zeros and not (named and _first_fault(path, "ascii") == (0, b"")):
        return own
    if named:
        if line := _first_fault(path, named)[0]:
            raise UserError(f"{path}:{line}: not {given}: name its encoding, or save it as UTF-8")
        return named
    if has_zeros:
        raise UserError(f"{path}: it holds no text, or UTF-16 without its mark: export the table again as CSV in UTF-8")
    if marked:
        raise UserError(f"{path}:{line}: damaged or cut off, as it is not UTF-16: copy or export it again")
    # If a few bytes of a UTF-8 file are Windows-1252, reading all of it as Windows-1252 would spoil every other accent.
    if _is_mostly_utf8(path):
        raise UserError(f"{path}:{line}: not UTF-8, as the rest of the file is: save it as UTF-8")
    raise UserError(
        f"{path}:{line}: not UTF-8, but {word.decode('cp1252', 'replace')[:40]!r} if this is cp1252: import it "
        "with encoding (--encoding cp1252), or save it as UTF-8",
    )


def _known(given: str) -> str:
    """Return the name of an encoding for Python. Raises UserError if it is not an encoding of text."""
    try:
        encoding = codecs.lookup(given).name
        b"ab".decode(given, "ignore")  # refuses what is no encoding of text, such as base64
        is_text = encoding not in _NOT_FOR_FILES
    except (LookupError, ValueError):
        is_text = False
    if not is_text:
        raise UserError(
            f"encoding (--encoding {quote(given)}): no such encoding: use utf-8, cp1252, gb18030, shift_jis, …"
        )
    return "utf-8-sig" if encoding == "utf-8" else encoding  # a mark at the start is not part of the first name


def _first_fault(path: Path, encoding: str) -> tuple[int, bytes]:
    """Return the first line that cannot be decoded, and the bytes of its word there; 0 if all can."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 16):
                line += decoder.decode(block).count("\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        before, after = error.object[: error.start], error.object[error.start :]
        word = b"".join(match[0] for match in (_WORD_END.search(before), _WORD_START.match(after)) if match)
        # The bytes before the fault in this decoder call are whole characters.
        return line + codecs.decode(before, encoding, "ignore").count("\n"), word
    return 0, b""


def _is_mostly_utf8(path: Path) -> bool:
    with path.open("rb") as file:
        content = file.read(1 << 24)
    pairs = _TWO_BYTES.findall(content)
    return 2 * sum(map(len, pairs)) > len(_HIGH.findall(content))
