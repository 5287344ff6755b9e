"""Sentences end where a reader would end them; what is in doubt stays whole."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.foundation.text.sentences import sentence_spans, sentences

WHOLE = [
    "He was seen at approx. 3 p.m. on Monday.",
    "Infliximab was given q.wk. for 8 wk. and then stopped.",
    "No. of platelets was 90 per nl.",
    "Dr. Smith and Prof. Jones saw her.",
    "Aspirin vs. Clopidogrel was compared.",
    "As Miller et al. Showed, it does not help.",
    "She got i.v. Ceftriaxone and p.o. Doxycycline.",
    "See Fig. 2 and Eqs. 3 and 4.",
    "CRP was 3.5 mg/dl, p < .05, vs. 0.2 before.",
    "J. R. R. Tolkien wrote to A. B. Watson.",
    "S. Typhi and E. coli grew.",
    "Give drugs (e.g. Heparin) or others, i.e. Warfarin.",
    "The U.S. Food and Drug Administration approved it.",
    "1. Take a history.",
    "A. The first choice",
    "Pt. No. 12 had St. Vitus dance.",
    "What is it? asked the nurse.",
    "She was well … until yesterday.",
    "The pH was 7.32, the lactate 4.1 mmol/l.",
    "a line that a program wrapped after seventy characters ends before the\nWHO is named.",
]

CUT = [
    ["It began at 3 p.m. yesterday.", "The patient was afebrile."],
    ["She was admitted at 3 p.m.", "The patient was afebrile."],
    ["It was given for 8 wk.", "Then it was stopped."],
    ["He had hepatitis B.", "Antivirals were given."],
    ["She lacked vitamin C.", "Her gums bled."],
    ["Was it sepsis?", "No!", "It was not."],
    ["See Fig. 2.", "Lactate rose."],
    ["He said “It hurts.”", "Nobody heard."],
    ["It is rare.[1][2,3]", "Few know it."],
    ["That was shown by Miller et al.", "However, others failed."],
    ["It began in 1998.", "Fever came."],
    ["The dose was 5 mg.", "3 days later he was well."],
    ["Findings", "The liver was large."],
    ["One paragraph", "another paragraph"],
    ["患者发热。", "无咳嗽。"],
    ["(It was mild.)", "It passed."],
    ["Is the answer no.", "He left."],
]


@pytest.mark.parametrize("text", WHOLE)
def test_sentences_stay_whole(text):
    assert sentences(text) == [text]


@pytest.mark.parametrize("parts", CUT, ids=lambda parts: parts[0])
def test_sentences_are_cut(parts):
    joint = {"Findings": "\n", "One paragraph": "\n\n", "患者发热。": ""}.get(parts[0], " ")
    assert sentences(joint.join(parts)) == parts


@given(st.text(alphabet="aA. \n!?1)“[]。pm", max_size=200))
def test_spans_are_in_order_and_leave_out_white_space_alone(text):
    spans = list(sentence_spans(text))
    assert all(start < end for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text", ["." * 200_000, ". " * 100_000, "\n " * 100_000, "A" * 200_000, " " * 200_000, '."' * 100_000]
)
def test_odd_texts_of_any_length_are_cut_in_one_pass(text):
    assert sum(end - start for start, end in sentence_spans(text)) <= len(text)
