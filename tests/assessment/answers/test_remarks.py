"""Remarks about open answers: another language, or a copy. They decide nothing."""

from __future__ import annotations

import pytest

from r2med.assessment.answers.remarks import MIN_COPIED_WORDS, remark_notices, remarks_on
from r2med.evaluation.records.answer_facts import GivenAnswer

QUESTION = (
    "A 54-year-old man has had a swollen and painful big toe since last night. He drinks beer every day and takes a "
    "thiazide for his blood pressure. Which crystals will be found in the fluid of his joint?"
)
PASSAGE = (
    "Gout is caused by crystals of monosodium urate in a joint. They are needles that shine when the light is "
    "polarised. Alcohol, meat and some drugs against high blood pressure raise the urate of the blood."
)


@pytest.mark.parametrize(
    "text",
    [
        "尿酸单钠晶体。",
        "Это кристаллы урата натрия.",
        "Es handelt sich um Kristalle aus Natriumurat, die man in der Gelenkflüssigkeit findet.",
    ],
)
def test_another_script_or_a_sentence_of_another_language_is_remarked(text: str) -> None:
    assert remarks_on(text, QUESTION, []) == ("another language",)


@pytest.mark.parametrize("text", ["β-thalassaemia", "Urate.", "Ménière", "Café au lait", "Mononatriumurat"])
def test_a_few_words_or_a_foreign_letter_are_no_other_language(text: str) -> None:
    assert remarks_on(text, QUESTION, [PASSAGE]) == ()


def test_a_copy_of_the_question_or_of_passages_is_remarked() -> None:
    assert remarks_on(QUESTION.upper(), QUESTION, [PASSAGE]) == ("copy of the question",)
    assert remarks_on(f"{PASSAGE} [1]", QUESTION, [PASSAGE]) == ("copy of passages",)
    first, *_ = QUESTION.split(". ")
    assert len(first.split()) < MIN_COPIED_WORDS
    assert remarks_on(f"{first}.", QUESTION, []) == (), "too short to be sure"
    assert remarks_on(f"{QUESTION} These are needles of monosodium urate.", QUESTION, []) == ()


def test_a_record_counts_its_remarks_in_a_notice() -> None:
    copied = GivenAnswer(query="q", condition="retrieved", status="answered", remarks=("copy of passages",))
    plain = copied.model_copy(update={"remarks": ()})
    assert list(remark_notices([plain])) == []
    (notice,) = remark_notices([copied, plain])
    assert notice == "1 of 2 answers have the remark “copy of passages”, which changes no score."
