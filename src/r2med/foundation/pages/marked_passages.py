"""Show the part of a text that matches a question best, with its matching words marked."""

from __future__ import annotations

from r2med.foundation.pages.page import MarkedText
from r2med.foundation.text.highlight import Words, best_window, matches


def marked_passage(label: str, text: str, words: Words, width: int) -> MarkedText:
    """Return the best part of a text on one line, with at most `width` characters and its matching words marked."""
    line = " ".join(text.split())
    window = best_window(line, words, width)
    pieces = [("… " if window.start else "", "")]
    at = window.start
    for match in window.matches:
        pieces.append((line[at : match.start], ""))
        pieces.append((line[match.start : match.stop], "" if words.is_common(match.term) else match.kind))
        at = match.stop
    pieces.append((line[at : window.stop] + (" …" if window.stop < len(line) else ""), ""))
    return MarkedText(label, [piece for piece in pieces if piece[0]])


def matching_words(text: str, words: Words) -> dict[str, list[str]]:
    """Return the matching words of a text, in lower case, by their source: query, generated or both."""
    by_source: dict[str, dict[str, str]] = {"query": {}, "generated": {}, "both": {}}
    for match in matches(text, words):
        if not words.is_common(match.term):
            by_source[match.kind].setdefault(match.term, text[match.start : match.stop].lower())
    return {source: list(found.values()) for source, found in by_source.items()}
