"""Rubrics are cards: the prompt, the guideline and the model of the answer come from one declaration."""

import pytest
from pydantic import ValidationError

from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS, find_rubric
from r2med.foundation.core.errors import UserError

OWN = """
noun = "case"
task = "Decide if the two cases are alike."
prompt = "Alike?\\n{words}\\n{rules}\\n<<<\\n{query}\\n>>>\\n<<<\\n{text}\\n>>>"
rules = "Age does not matter."
texts = [{field = "query", label = "Case"}, {field = "text", label = "Other case", rated = true}]
points = [{name = "alike", text = "Are they alike?"}]
words = [{word = "no", means = "they differ."}, {word = "yes", means = "they are alike.", yes = true}]
"""


@pytest.fixture
def own(tmp_path):
    """The file of a user's own rubric."""
    file = tmp_path / "alike.toml"
    file.write_text(OWN, "utf-8")
    return file


@pytest.mark.parametrize("name", [name for name in RUBRICS if RUBRICS[name].prompt])
def test_a_rubric_of_ours_has_a_prompt_whose_words_have_meanings(name):
    rubric = RUBRICS[name]
    text = rubric.template().text
    for word in rubric.words:
        assert not word.means or f"{word.word}: {word.means}" in text
        assert not word.means or word.means in rubric.guideline
    assert "{words}" not in text and "{rules}" not in text


def test_an_own_rubric_is_a_file_whose_words_an_llm_answers(own):
    rubric = find_rubric(str(own))
    assert "no: they differ." in rubric.template().text and "Age does not matter." in rubric.template().text
    said = rubric.read(rubric.answer.model_validate({"why": "same age", "alike": "YES"}))
    assert said == {"alike": "yes"} and rubric.says_yes(said)
    assert rubric.read(rubric.answer.model_validate({"why": "w", "alike": False})) == {"alike": "no"}
    with pytest.raises(ValidationError):
        rubric.answer.model_validate({"why": "w", "alike": "perhaps"})


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("{text}", "text", "{text}"),
        (", yes = true", "", "yes"),
        (", rated = true", "", "rated"),
        ('word = "yes"', 'word = "no"', "'no'"),
        ("noun = ", "nuon = ", "noun"),
    ],
)
def test_a_wrong_rubric_is_one_line_that_names_the_file(own, old, new, fault):
    own.write_text(OWN.replace(old, new), "utf-8")
    with pytest.raises(UserError) as raised:
        find_rubric(str(own))
    assert str(own) in str(raised.value) and fault in str(raised.value) and "\n" not in str(raised.value)


def test_an_unknown_rubric_is_named_with_the_nearest():
    with pytest.raises(UserError, match="relevance"):
        find_rubric("relevanse")


@pytest.mark.parametrize(
    ("word", "highest", "grade"), [("1", 1, 0), ("2", 1, 1), ("3", 2, 2), ("1", 2, 0), ("3", 4, 3)]
)
def test_a_grade_fits_the_scale_of_the_dataset(word, highest, grade):
    assert RUBRICS["relevance"].grade(word, highest) == grade


def test_the_token_of_an_item_changes_with_its_texts_only():
    item = Item(("q", "d"), {"query": "a", "text": "b"}, "relevance", stratum="positive")
    assert item.token == Item(("q", "d"), {"query": "a", "text": "b"}, "relevance").token
    assert item.token != Item(("q", "d"), {"query": "a", "text": "c"}, "relevance").token
    assert item.token != Item(("q", "d"), {"query": "a", "text": "b"}, "passage").token
