"""Tables in Python: aligned text for print, and plain HTML with escaped data for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from r2med.pages.cells import ShownColumn


def aligned_text(columns: Sequence[ShownColumn]) -> str:
    """Return columns as lines of text. Texts are aligned left, numbers right."""
    padded = map(_padded, columns)
    return "\n".join("  ".join(cells).rstrip() for cells in zip(*padded, strict=True))


def _padded(column: ShownColumn) -> list[str]:
    texts = [column.head, *column.texts]
    width = max(map(len, texts))
    return [text.rjust(width) if column.is_numeric else text.ljust(width) for text in texts]


def notebook_table(columns: Sequence[ShownColumn], title: str) -> str:
    """Return columns as a table of HTML."""
    caption = element("caption", title) if title else ""
    head = "".join(element("th", column.head) for column in columns)
    rows = zip(*(column.texts for column in columns), strict=True)
    lines = "".join(f"<tr>{''.join(element('td', text) for text in row)}</tr>" for row in rows)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def element(tag: str, text: str) -> str:
    """Return an element of HTML around a text."""
    return f"<{tag}>{escape(text)}</{tag}>"
