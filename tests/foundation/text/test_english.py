"""`english` gives what Lucene's EnglishAnalyzer gives; `lucene_cases.jsonl` holds what Lucene 9.5.0 gave."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from r2med.foundation.text import analyse_chunks, english, terms
from r2med.foundation.text.english import _lower, blank_outside_tokens
from r2med.foundation.text.segment import MAX_UNITS, segment

CASES: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
for line in Path(__file__).with_name("lucene_cases.jsonl").read_text(encoding="ascii").splitlines():
    case = json.loads(line)
    CASES[case["rule"]].append((case["text"], case["tokens"]))

# Where the rules meet: plain letters are too seldom next to what they react to in random text.
ADVERSARIAL = (
    "abys1_.,:;'\u2019\"-#\u05d0\u30ab\u3042\u4e00\uac00\u0e01\u0e31\u0301\u200d\ufe0f"
    "\U0001f600\u24c2\U0001f1e9\u20e3\U0001f3fd"
)
texts = st.one_of(st.text(), st.text(ADVERSARIAL + " "), st.text("ab1.,:;'_ -S"))
chunks = texts.map(lambda text: "".join(text.split()))
ascii_characters = st.characters(max_codepoint=127, exclude_characters=" \t\n\r\x0b\x0c")
ascii_chunks = st.text(ascii_characters, max_size=MAX_UNITS)


@pytest.mark.parametrize("rule", CASES)
def test_terms_are_those_of_lucene(rule: str) -> None:
    for text, tokens in CASES[rule]:
        assert english(text) == tokens, ascii(text)


@given(texts, texts)
def test_white_space_separates(before: str, after: str) -> None:
    assert english(before + " " + after) == english(before) + english(after)


@given(ascii_chunks)
def test_the_way_for_plain_text_gives_the_tokens_of_the_general_way(chunk: str) -> None:
    assert blank_outside_tokens(chunk).split() == [_lower(token) for token in segment(chunk)]


@given(st.text("ab1.,:;'_-", max_size=40))
def test_the_way_for_plain_text_knows_all_joiners(chunk: str) -> None:
    assert blank_outside_tokens(chunk).split() == segment(chunk)


@given(st.lists(chunks))
def test_many_chunks_are_analysed_as_each_alone(many: list[str]) -> None:
    assert analyse_chunks(many) == [terms(chunk) for chunk in many]


@given(st.lists(texts))
def test_a_line_break_inside_a_chunk_does_not_shift_the_others(many: list[str]) -> None:
    assert analyse_chunks(many) == [terms(chunk) for chunk in many]


@given(chunks)
def test_english_of_one_chunk_is_its_terms(chunk: str) -> None:
    assert english(chunk) == list(terms(chunk))


def test_no_chunks_give_nothing() -> None:
    assert analyse_chunks([]) == []
    assert analyse_chunks([""]) == [()]


def test_a_long_run_of_underscores_takes_no_quadratic_time() -> None:
    assert english("_" * 20_000) == []
    assert english("\u203f" * 20_000) == []


def test_half_a_character_at_the_very_end_loses_nothing() -> None:
    """Lucene drops or cuts up to 255 units before it, depending on how its buffer fell; we keep the text."""
    assert english("chest pain\ud83d") == ["chest", "pain"]
