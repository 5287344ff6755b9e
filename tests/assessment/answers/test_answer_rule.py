"""The rule for open answers: only an answer that is the reference counts, everything else is undecided."""

import pytest

from r2med.assessment.answers.answer_rule import by_rule

GOLD = "Acute pancreatitis"


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("acute  pancreatitis.", GOLD),
        ("The acute pancreatitis", GOLD),
        ("“Acute pancreatitis”", GOLD),
        ("ACUTE PANCREATITIS!", "the acute pancreatitis"),
        ("Tumor induced (oncogenic) osteomalacia", "Tumor-induced (oncogenic) osteomalacia"),
        ("Sjögren’s syndrome", "Sjögren's syndrome"),
        ("Hepatitis A", "hepatitis a"),
        ("An antibody", "antibody"),
        ("急性胰腺炎。", "急性胰腺炎"),
    ],
)
def test_an_answer_that_is_the_reference_is_right(text: str, gold: str) -> None:
    assert by_rule(text, gold) is True


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Acute pancreatitis, ruled out by a normal lipase.",
        "Gallstones; acute pancreatitis; gastritis",
        "The wrong answer is acute pancreatitis.",
        "Answer: acute pancreatitis, gastritis",
        "Final answer: acute pancreatitis or gastritis",
        "Acute pancreatitis? No.",
        "Everything but acute pancreatitis",
        "This is not acute pancreatitis.",
        "This is acute pancreatitis.",
        "Anyone who says acute pancreatitis is mistaken.",
        "Pancreatitis",
        "Gastritis",
    ],
)
def test_any_other_answer_is_undecided_whatever_it_names(text: str) -> None:
    assert by_rule(text, GOLD) is None


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("Hepatitis", "Hepatitis A"),
        ("Vitamin", "Vitamin A"),
        ("Rh+", "Rh-"),
        ("5", "5 %"),
        ("15 mg", "1.5 mg"),
        ("antigen", "A antigen"),
        ("anything", ""),
        ("", ""),
    ],
)
def test_what_carries_a_meaning_is_not_normalised_away(text: str, gold: str) -> None:
    assert by_rule(text, gold) is None


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        ("<5", ">5"),
        ("-5 mmol/l", "5 mmol/l"),
        ("1020", "10-20"),
        ("3,5 g", "35 g"),
        ("A+", "A-"),
        ("T1/2", "T12"),
        ("5 mg", "5 µg"),
        ("HLA-B*27", "HLA-B27:05"),
        ("...", "?"),
        ("The", "A"),
    ],
)
def test_signs_numbers_and_units_are_never_taken_for_each_other(text: str, gold: str) -> None:
    assert by_rule(text, gold) is None


@pytest.mark.parametrize(
    ("text", "gold"), [("Me\u0301nie\u0300re", "Ménière"), ("STRASSE", "straße"), ("5\u00a0%", "5 %")]
)
def test_two_ways_to_write_the_same_letters_are_one_answer(text: str, gold: str) -> None:
    assert by_rule(text, gold) is True
