import pytest

from r2med.construction.steps.leaks import named_in
from support.builds import built


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


def test_the_answer_and_its_synonyms_must_not_stand_in_the_question(tmp_path):
    table = (
        "id,question,answer\nown,A child with varicella.,Varicella\nother,A child with chickenpox.,Varicella\n"
        "fine,A child with vesicles.,Varicella\n"
    )
    answers = [(["Entity: Varicella"], {"names": ["chickenpox", "VZV infection"]})]
    build = built(tmp_path, ["read-table(q.csv)", "check-leaks"], {"q.csv": table}, answers)
    assert [question.id for question in build.items(2)] == ["fine"]
    assert [(left.key, left.note) for left in build.rejected(2)] == [("own", "Varicella"), ("other", "chickenpox")]
    assert build.status()[1].cost.calls == 2
