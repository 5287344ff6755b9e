"""Characters that a wrong encoding left in a text are found, and sound texts stay silent."""

import pytest

from r2med.assessment.audit.encoding_faults import (
    CONTROLS,
    ENTITIES,
    MOJIBAKE,
    REPLACED,
    SURROGATES,
    encoding_faults,
)


@pytest.mark.parametrize(
    ("text", "kind", "example"),
    [
        ("MÃ©niÃ¨re disease", MOJIBAKE, "Ã©"),
        ("at 37 Â°C", MOJIBAKE, "Â°"),
        ("Crohnâ€™s disease", MOJIBAKE, "â€™"),
        ("M\ufffdni\ufffdre", REPLACED, "\ufffd"),
        ("a\x00b", CONTROLS, "\x00"),
        ("a\x96b", CONTROLS, "\x96"),
        ("a \\ud83d b", SURROGATES, "\\ud83d"),
        ("a \ud83d b", SURROGATES, "\ud83d"),
        ("p &lt; 0.05", ENTITIES, "&lt;"),
        ("10 &#956;g", ENTITIES, "&#956;"),
    ],
)
def test_a_fault_is_found_with_the_characters_that_show_it(text: str, kind: str, example: str) -> None:
    assert encoding_faults(text)[kind] == example


@pytest.mark.parametrize(
    "text",
    [
        "Ménière, 37 °C, β-blocker, naïve, «CAFÉ», SÃO PAULO, 50 µg, p < 0.05 & q > 1",
        "糖尿病 diabète Âge â l'été 🙂",
        "tabs\tand\nlines\r\n and R&D; and \\alpha",
        "",
    ],
)
def test_sound_text_has_no_fault(text: str) -> None:
    assert encoding_faults(text) == {}
