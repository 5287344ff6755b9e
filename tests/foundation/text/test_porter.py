"""`stem` gives what Lucene's PorterStemFilter gives; `porter_cases.jsonl` holds what Lucene 9.5.0 gave."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from r2med.foundation.text.porter import stem


def test_stems_are_those_of_lucene() -> None:
    for line in Path(__file__).with_name("porter_cases.jsonl").read_text(encoding="ascii").splitlines():
        case = json.loads(line)
        assert stem(case["word"]) == case["stem"], case["word"]


@given(st.text("abcdefghijklmnopqrstuvwxyz", max_size=2))
def test_words_of_one_or_two_letters_stay(word: str) -> None:
    assert stem(word) == word


@given(st.text("abcdefghijklmnopqrstuvwxyz0", min_size=1))
def test_a_stem_is_not_empty_and_not_longer_than_its_word(word: str) -> None:
    assert 1 <= len(stem(word)) <= len(word)
