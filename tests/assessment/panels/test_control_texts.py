"""Texts of controls: which texts name an answer, and orders to the judge inside a passage."""

from __future__ import annotations

import random

import pytest

from r2med.assessment.panels.control_texts import ANSWER_ORDERS, names_answer, ordered


@pytest.mark.parametrize("text", ["It is gout.", "GOUT!", "Gout, since May", "(gout)"])
def test_a_text_names_an_answer_as_whole_words(text: str) -> None:
    assert names_answer(text, "Gout") and names_answer(text, "gout.")


def test_a_text_without_spaces_names_an_answer_inside_it() -> None:
    assert names_answer("诊断为急性胰腺炎。", "急性胰腺炎")


def test_a_sign_at_the_end_of_an_answer_belongs_to_it() -> None:
    assert names_answer("The group is Rh-.", "Rh-")
    assert not names_answer("The group is Rh+.", "Rh-") and not names_answer("He is Rh-positive.", "Rh-")


@pytest.mark.parametrize(
    ("text", "answer"),
    [("A gouty toe", "gout"), ("gout of the acute kind", "acute gout"), ("anything", ""), ("", "gout"), ("x", "...")],
)
def test_a_part_of_a_word_another_order_or_nothing_names_no_answer(text: str, answer: str) -> None:
    assert not names_answer(text, answer)


def test_an_order_stands_beside_every_sentence_of_the_text_and_depends_on_the_seed_alone() -> None:
    text = "Urate falls out. It hurts. Rest helps."
    made = {ordered(text, random.Random(seed)) for seed in range(40)}
    assert len(made) > 20, "a judge that knows one form may obey another"
    for each in made:
        assert len(each) > len(text)
        assert all(sentence in each for sentence in ("Urate falls out.", "It hurts.", "Rest helps."))
        assert "NOUN" not in each
    assert ordered(text, random.Random(7)) == ordered(text, random.Random(7))


def test_orders_in_answers_speak_of_an_answer() -> None:
    made = [ordered("It is gout.", random.Random(seed), "answer", ANSWER_ORDERS) for seed in range(40)]
    assert not [each for each in made if "passage" in each]
