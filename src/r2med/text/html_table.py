"""Tables for notebooks: plain HTML, in which nothing of what is shown is markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return a table; short rows are filled up with empty cells."""
    told = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    lines = (_cells([*row, *[""] * (len(heads) - len(row))]) for row in rows)
    return f"<table>{told}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cells(row: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<td>{escape(str(value))}</td>' for value in row)}</tr>"
