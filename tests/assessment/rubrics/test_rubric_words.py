"""What the words of a rubric decide, and files of rubrics and prompts that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med.assessment.rubrics.rubric import RUBRICS, Point, RatedText, Rubric, Word, find_rubric, highest_grade
from support.facts import error_states

TEXTS = (RatedText(field="query", label="Question", required=True), RatedText(field="text", label="Text", rated=True))


def rubric(**fields: object) -> Rubric:
    """Return a rubric with one point and the usual words, apart from what is given."""
    usual = {"name": "r", "noun": "n", "task": "t", "texts": TEXTS, "points": (Point(name="good"),)}
    return Rubric.model_validate({**usual, **fields})


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ({"a": "yes", "b": "yes"}, "accept"),
        ({"a": "yes", "b": "no"}, "reject"),
        ({"a": "unsure", "b": "no"}, "reject"),
        ({"a": "unsure", "b": "yes"}, "unsure"),
        ({"a": "yes"}, "accept"),
        ({"a": "yes", "b": "not a word"}, "accept"),
    ],
)
def test_one_no_rejects_and_one_doubt_leaves_an_item_undecided(answers: dict[str, str], verdict: str) -> None:
    assert rubric(points=(Point(name="a"), Point(name="b"))).verdict(answers) == verdict


def test_if_some_points_leave_items_out_the_others_do_not_decide() -> None:
    points = (Point(name="right", rejects="wrong answer"), Point(name="nice"))
    assert rubric(points=points).verdict({"right": "yes", "nice": "no"}) == "accept"
    assert rubric(points=points).verdict({"right": "no", "nice": "yes"}) == "reject"


def test_a_word_has_a_label_and_a_verdict_of_its_own_or_those_that_follow_from_it() -> None:
    assert [word.decides for word in rubric().words] == ["reject", "unsure", "accept"]
    assert [word.shown for word in rubric().words] == ["No", "Unsure", "Yes"]
    keep = Word(word="partly", label="In part", verdict="accept")
    assert (keep.shown, keep.decides) == ("In part", "accept")
    own = rubric(words=(Word(word="no"), keep, Word(word="yes", yes=True)))
    assert (own.word_of("accept"), own.word_of("unsure"), own.place("yes")) == ("partly", None, 2)


def test_an_answer_means_yes_only_if_every_point_does() -> None:
    two = rubric(points=(Point(name="a"), Point(name="b")))
    assert two.has_several_points and two.says_yes({"a": "yes", "b": "yes"})
    assert not two.says_yes({"a": "yes", "b": "unsure"})
    assert rubric(points=(Point(name="verdict"),)).has_verdict and not two.has_verdict


def test_what_lacks_a_text_that_is_rated_or_required_is_no_item() -> None:
    beside = RatedText(field="more", label="More")
    whole = rubric(texts=(*TEXTS, beside))
    assert [each.field for each in whole.main] == ["text"]
    assert [each.field for each in whole.beside] == ["query", "more"]
    made = whole.item(("q", "d"), {"query": "Why?", "text": "So.", "else": "x"}, stratum="positive")
    assert made is not None and made.texts == {"query": "Why?", "text": "So.", "more": ""}
    assert (made.rubric, made.stratum) == ("r", "positive")
    assert whole.item(("q", "d"), {"query": "Why?", "text": ""}) is None
    assert whole.item(("q", "d"), {"text": "So."}) is None


@pytest.mark.parametrize(
    ("fields", "facts"),
    [
        ({"points": (Point(name="a"), Point(name="a"))}, ["point", "'a'", "twice"]),
        ({"texts": (*TEXTS, RatedText(field="text", label="x"))}, ["text", "'text'", "twice"]),
        ({"words": (Word(word="no", key="k"), Word(word="yes", key="k", yes=True))}, ["key", "'k'", "twice"]),
        ({"words": tuple(Word(word=word, yes=word != "b") for word in "abc")}, ["yes", "end"]),
        ({"texts": (*TEXTS, RatedText(field="x", label="x", corrects=True))}, ["'x'", "corrected"]),
        (
            {"texts": tuple(RatedText(field=name, label="x", rated=True, corrects=True) for name in "ab")},
            ["corrects", "one text"],
        ),
    ],
)
def test_a_rubric_that_contradicts_itself_is_refused(fields: dict[str, object], facts: list[str]) -> None:
    with pytest.raises(ValueError) as refused:
        rubric(**fields)
    assert all(fact in str(refused.value) for fact in facts), refused.value


def test_without_a_prompt_only_people_rate() -> None:
    with error_states("r", "prompt", "people"):
        rubric().template()
    assert rubric().guideline == "t", "words without a meaning are no list"


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (None, ["own.txt", "read"]),
        (b"\xff", ["own.txt", "UTF-8"]),
        (b"Is it good? {query}", ["own.txt", "{text}"]),
    ],
)
def test_a_prompt_of_the_user_that_cannot_be_used_is_one_line(
    tmp_path: Path, content: bytes | None, facts: list[str]
) -> None:
    if content is not None:
        (tmp_path / "own.txt").write_bytes(content)
    with error_states(*facts):
        RUBRICS["relevance"].template(tmp_path / "own.txt")


def test_a_prompt_of_the_user_gets_the_words_and_the_rules(tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("{words}\n{rules}\n{query} {text}")
    relevance = RUBRICS["relevance"]
    shown = relevance.template(tmp_path / "own.txt")
    assert shown.file == str(tmp_path / "own.txt")
    assert shown.text.startswith(f"{relevance.words[-1].word}: ") and relevance.rules in shown.text


def test_a_missing_file_of_a_rubric_is_one_line(tmp_path: Path) -> None:
    with error_states(tmp_path / "none.toml"):
        find_rubric(str(tmp_path / "none.toml"))


def test_the_highest_grade_of_no_judgements_is_1() -> None:
    assert highest_grade({}) == highest_grade({"q": {}}) == 1
    assert highest_grade({"q": {"d": 1, "e": 3}, "p": {"d": 2}}) == 3


@pytest.mark.parametrize("name", list(RUBRICS))
def test_no_two_buttons_of_the_review_page_have_one_key(name: str) -> None:
    keys = [word.key or str(place) for place, word in enumerate(RUBRICS[name].words)]
    assert len(set(keys)) == len(keys)
