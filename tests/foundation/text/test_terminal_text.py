"""Text on any terminal: in signs that it has, and none that steers it."""

import pytest

from r2med.foundation.text.terminal_text import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hyde(author) → bm25", "hyde(author) → bm25"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\x9b31m\u202e", r"\x9b31m\u202e"),
        ("\udcff", r"\udcff"),
    ],
)
def test_nothing_printed_can_steer_a_terminal(text: str, shown: str) -> None:
    assert printable(text) == shown
