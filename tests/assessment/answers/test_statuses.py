"""The status of an answer, by rules: what declines, repeats the question or is in another language is no answer."""

from __future__ import annotations

import pytest

from r2med.assessment.answers.statuses import MIN_COPIED_WORDS, status_of

QUESTION = (
    "A 54-year-old man has had a swollen and painful big toe since last night. He drinks beer every day and takes a "
    "thiazide for his blood pressure. Which crystals will be found in the fluid of his joint?"
)


@pytest.mark.parametrize(
    "text",
    [
        "I cannot answer this question.",
        "I'm sorry, but I can't help with that.",
        "As an AI language model, I cannot give medical advice.",
        "I'm unable to answer that.",
        "I CANNOT ANSWER THIS QUESTION!",
        "I can’t answer this.",
    ],
)
def test_an_answer_that_only_declines_is_refused(text: str) -> None:
    assert status_of(text, QUESTION) == "refused"


@pytest.mark.parametrize(
    "text",
    [
        "I cannot say for sure, but it is gout.",
        "I am not a doctor. However, these are crystals of monosodium urate.",
        "The patient cannot answer questions because of his aphasia.",
        "He refuses treatment, so the toe stays swollen.",
        "The joint cannot be moved.",
    ],
)
def test_an_answer_with_doubt_or_about_somebody_who_cannot_is_an_answer(text: str) -> None:
    assert status_of(text, QUESTION) == "answered"


@pytest.mark.parametrize(
    "text",
    [
        "尿酸单钠晶体。",
        "Это кристаллы урата натрия.",
        "Es handelt sich um Kristalle aus Natriumurat, die man in der Gelenkflüssigkeit findet.",
    ],
)
def test_another_script_or_a_sentence_of_another_language_is_no_answer(text: str) -> None:
    assert status_of(text, QUESTION) == "other language"


@pytest.mark.parametrize("text", ["β-thalassaemia", "Urate.", "Ménière", "Café au lait", "Mononatriumurat"])
def test_a_few_words_or_a_foreign_letter_are_no_other_language(text: str) -> None:
    assert status_of(text, QUESTION) == "answered"


def test_the_question_instead_of_an_answer_is_copied() -> None:
    assert status_of(QUESTION, QUESTION) == "copied"
    assert status_of(QUESTION.upper(), QUESTION) == "copied"
    first, *_ = QUESTION.split(". ")
    assert len(first.split()) < MIN_COPIED_WORDS
    assert status_of(f"{first}.", QUESTION) == "answered", "too short to be sure"


def test_the_question_with_a_diagnosis_of_ones_own_is_an_answer() -> None:
    assert status_of(f"{QUESTION} These are needles of monosodium urate.", QUESTION) == "answered"
