"""Lone surrogates are noticed, joined where they belong together, and replaced where they do not."""

import pytest

from r2med.foundation.text.unicode import is_unicode, to_unicode


@pytest.mark.parametrize("text", ["", "gout", "Ménière", "\U0001f9ec", "\0"])
def test_text_with_a_utf8_stays_as_it_is(text: str) -> None:
    assert is_unicode(text)
    assert to_unicode(text) is text


@pytest.mark.parametrize(
    ("text", "sound"), [("a\ud800b", "a\ufffdb"), ("\udc00", "\ufffd"), ("\ud83e\uddec", "\U0001f9ec")]
)
def test_surrogates_are_joined_or_replaced(text: str, sound: str) -> None:
    assert not is_unicode(text)
    assert to_unicode(text) == sound
