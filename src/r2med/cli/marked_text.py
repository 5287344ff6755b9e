"""Passages in the terminal: the stretch that matches best, with the words that match in colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.cli.console import plain

if TYPE_CHECKING:
    from rich.text import Text

    from r2med.text.highlight import Words

STYLES = {"query": "bold yellow", "generated": "bold cyan", "both": "bold green"}
LEGEND = "words of the question are yellow, of what was written cyan, of both green"


def marked(text: str, words: Words, width: int) -> Text:
    """Return the best stretch of a text of at most `width` letters, on one line, its matches in colour."""
    from r2med.text.highlight import COMMON_TERMS, best_window

    line = " ".join(text.split())
    window = best_window(line, words, width)
    shown = plain("… " if window.start else "")
    at = window.start
    for match in window.matches:
        shown += plain(line[at : match.start])
        style = "" if match.term in COMMON_TERMS else STYLES[match.kind]
        shown += plain(line[match.start : match.stop], style)
        at = match.stop
    return shown + plain(line[at : window.stop] + (" …" if window.stop < len(line) else ""))


def shared(text: str, words: Words) -> dict[str, list[str]]:
    """Return the words of a text that match, as they stand in it, by where they come from."""
    from r2med.text.highlight import COMMON_TERMS, matches

    kinds: dict[str, dict[str, str]] = {kind: {} for kind in STYLES}
    for match in matches(text, words):
        if match.term not in COMMON_TERMS:
            kinds[match.kind].setdefault(match.term, text[match.start : match.stop].lower())
    return {kind: list(of_kind.values()) for kind, of_kind in kinds.items()}
