import pytest

from r2med.construction.translation.chrf import chrf


@pytest.mark.parametrize(
    ("text", "reference", "six", "two"),
    [  # sentence_score of sacrebleu 2.6.0 with char_order 6 and 2
        ("无咳嗽或胸痛。", "无咳嗽，无胸痛。", 28.372965347755258, 67.87434074753497),
        ("The cat sat.", "The cat sits here.", 40.15278625619982, 55.2219321148825),
        ("体温38.5℃", "体温38.5℃", 100.0, 100.0),
    ],
)
def test_the_values_are_those_of_sacrebleu(text, reference, six, two):
    assert chrf(text, reference) == pytest.approx(six, abs=1e-9)
    assert chrf(text, reference, order=2) == pytest.approx(two, abs=1e-9)


@pytest.mark.parametrize(("text", "reference"), [("", "无"), ("无", ""), ("", ""), ("a", "b"), (" ", "a")])
def test_texts_without_a_common_character_have_no_similarity(text, reference):
    assert chrf(text, reference) == 0
