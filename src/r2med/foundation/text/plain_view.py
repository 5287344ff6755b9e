"""A view of a text without what hides words from rules: zero-width characters, HTML entities, full-width letters."""

from __future__ import annotations

import html
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

_HIDING = re.compile(
    r"[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
    r"|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
)
_PLAIN = {number: chr(number - 0xFEE0) for number in range(0xFF01, 0xFF5F)}
_PLAIN |= dict.fromkeys([0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")
_PLAIN |= dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013], "-") | {0x2019: "'", 0x02BC: "'"}


@dataclass(frozen=True)
class PlainView:
    """A text as rules see it, and where each of its characters comes from."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    """Start and end of each character in the original. Empty if the positions are the same."""

    @classmethod
    def of(cls, text: str) -> PlainView:
        """Return the view of a text."""
        if not _HIDING.search(text):
            return cls(text.translate(_PLAIN), (), ())
        parts: list[str] = []
        starts, ends = array("q"), array("q")
        done = 0
        for match in _HIDING.finditer(text):
            starts.extend(range(done, match.start()))
            ends.extend(range(done + 1, match.start() + 1))
            shown = _HIDING.sub("", html.unescape(match[0])) if match[0].startswith("&") else ""
            parts += [text[done : match.start()], shown]
            starts.extend([match.start()] * len(shown))
            ends.extend([match.end()] * len(shown))
            done = match.end()
        starts.extend(range(done, len(text)))
        ends.extend(range(done + 1, len(text) + 1))
        return cls("".join([*parts, text[done:]]).translate(_PLAIN), starts, ends)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions of a part of the view in the original text."""
        return (self.starts[start], self.ends[end - 1]) if self.starts else (start, end)
