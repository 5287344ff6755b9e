"""A document as search agents are given it: the first line is its title, the rest its text."""

from __future__ import annotations


def contents(text: str) -> str:
    """Return a text such that its first line is a title: its own, where there are several, else an empty one.

    A text of one line, sent as it is, would be all title and no text to a client of Search-R1's protocol.
    """
    return text if "\n" in text else f"\n{text}"


def title_and_text(contents: str) -> tuple[str, str]:
    """Return the two, as such a client reads them."""
    title, _, text = contents.partition("\n")
    return title.strip(), text.strip()
