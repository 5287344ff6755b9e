"""Text that has a UTF-8: JSON's escapes can spell lone surrogates, halves of characters that have none."""

from __future__ import annotations


def is_unicode(text: str) -> bool:
    """Return whether a string can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_unicode(text: str) -> str:
    """Return the text with surrogates joined to the characters they are halves of, or replaced by U+FFFD."""
    if is_unicode(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
