"""A name is found in a text by whole words."""

import pytest

from r2med.foundation.text.named import named_in


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("He has guillain barre syndrome.", "Guillain-Barre syndrome"),
        ("Gallstones were seen.", "gallstone"),
        ("Cancer of the lung", "cancer of lung"),
        ("An ALL was ruled out", "ALL"),
        ("gout in the family", "Gout"),
    ],
)
def test_a_name_is_known_whatever_its_case_and_ending(text, name):
    assert named_in(text, ["other thing", name]) == name


@pytest.mark.parametrize(("text", "name"), [("all of them", "ALL"), ("goutweed", "gout"), ("", "x")])
def test_a_part_of_a_word_or_a_small_word_is_no_name(text, name):
    assert not named_in(text, [name])
