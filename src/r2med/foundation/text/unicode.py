"""Check and repair lone surrogates. JSON escapes can write these halves of characters, but UTF-8 cannot."""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    """Return True if a string can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_unicode(text: str) -> str:
    """Return the text with pairs of surrogates joined to characters and lone surrogates replaced by U+FFFD."""
    if is_unicode(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
