"""The option that an answer states as its choice. Two options, or none, are no choice."""

from __future__ import annotations

import time

import pytest

from r2med.assessment.answers.answer_options import LETTERS
from r2med.assessment.answers.stated_option import stated_option
from support.answer_sentences import CHOICE_SENTENCES, JOINT, ChoiceSentence


@pytest.mark.parametrize("sentence", CHOICE_SENTENCES, ids=lambda sentence: sentence.text)
def test_the_option_that_a_sentence_states_is_found(sentence: ChoiceSentence) -> None:
    found = stated_option(sentence.text, list(sentence.options.values()))
    assert (None if found is None else LETTERS[found]) == sentence.choice


LYMPHOMA = ("Hodgkin lymphoma", "Non-Hodgkin lymphoma", "Heart failure", "Acute heart failure")
BACTERIA = ("S. aureus", "C. difficile", "E. coli", "Klebsiella")


@pytest.mark.parametrize(
    ("text", "options", "choice"),
    [
        ("non-Hodgkin lymphoma", LYMPHOMA, "B"),
        ("The diagnosis is acute heart failure", LYMPHOMA, "D"),
        ("This is heart failure.", LYMPHOMA, "C"),
        ("C. difficile", BACTERIA, "B"),
        ("The most likely organism is E. coli.", BACTERIA, "C"),
        ("C. difficile is the cause.", BACTERIA, None),
    ],
)
def test_the_longest_option_is_read_and_a_text_before_a_letter(text: str, options: list[str], choice: str) -> None:
    found = stated_option(text, options)
    assert (None if found is None else LETTERS[found]) == choice


@pytest.mark.parametrize(
    "text",
    [
        "It is not septic arthritis.",
        "The answer is not B.",
        "B is incorrect.",
        "I do not think that the answer is B.",
        "It is unclear whether the answer is B.",
        "The answer is a rare disease.",
        "Hepatitis A is most likely.",
        "A, C",
        "The answer is both A and C.",
        "Answer: A; or rather, Answer: B",
        "The passages rule out A, B and D.",
        "".join(f"{letter}. {text}\n" for letter, text in JOINT.items()),
    ],
)
def test_a_denied_option_a_word_that_looks_like_one_and_several_are_no_choice(text: str) -> None:
    assert stated_option(text, list(JOINT.values())) is None


@pytest.mark.parametrize("text", ["A, " * 10_000, "A and " * 10_000, "it is not " * 10_000, "(" * 30_000])
def test_a_text_of_only_letters_does_not_take_minutes(text: str) -> None:
    before = time.process_time()
    stated_option(text, list(JOINT.values()))
    assert time.process_time() - before < 5
