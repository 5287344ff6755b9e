"""Words that match by index term, and the window that matches best."""

import json
from pathlib import Path

import pytest

from r2med.foundation.text.english import CHUNK_PATTERN, english, located_terms
from r2med.foundation.text.highlight import Words, best_window, matches

CASES = [json.loads(line) for line in Path(__file__).with_name("lucene_cases.jsonl").open(encoding="utf-8")]


def marked(text, words):
    return [(text[match.start : match.stop], match.kind) for match in matches(text, words)]


def test_terms_are_located_where_the_analyser_sees_them():
    texts = [case["text"] for case in CASES]
    assert len(texts) > 50
    for text in texts:
        located = [(chunk[0], part) for chunk in CHUNK_PATTERN.finditer(text) for part in located_terms(chunk[0])]
        assert [term for _, (_, _, term) in located] == english(text)
        assert all(0 <= start < stop <= len(chunk) for chunk, (start, stop, _) in located)


def test_words_match_by_stem_and_say_where_they_come_from():
    words = Words.of("wrinkled fingers", ["Nerves make a finger wrinkle by vasoconstriction."])
    assert marked("Wrinkling needs nerves: vasoconstrictive, not soaked. (The finger's own.)", words) == [
        ("Wrinkling", "both"),
        ("nerves", "generated"),
        ("vasoconstrictive", "generated"),
        ("finger's", "both"),
    ]
    assert marked("of the and", Words.of("of the and")) == []


def test_parts_of_one_chunk_are_marked_apart():
    assert marked("fever/chills,rash__x", Words.of("fevers rash")) == [("fever", "query")]
    assert marked("fever/chills-rash", Words.of("fevers rash")) == [("fever", "query"), ("rash", "query")]
    assert marked("naïve–Straße 日本", Words.of("straße 本")) == [("Straße", "query"), ("本", "query")]


def test_the_window_has_many_different_words_rather_than_one_many_times():
    text = "fever " * 40 + "x " * 100 + "the fever came with a rash and with chills " + "y " * 100
    window = best_window(text, Words.of("fever rash chills"), 80)
    assert "fever came with a rash and with chills" in text[window.start : window.stop]
    assert {match.term for match in window.matches} == {"fever", "rash", "chill"}
    assert window.stop - window.start <= 80


def test_a_window_without_matches_is_the_beginning_and_cuts_no_word():
    text = "Alpha beta gamma delta"
    window = best_window(text, Words.of("omega"), 12)
    assert text[window.start : window.stop] == "Alpha beta"
    assert best_window("", Words.of("omega"), 12).matches == ()


@pytest.mark.parametrize("width", [40, 300])
def test_a_line_without_blanks_is_cut_at_the_width(width):
    window = best_window("a-" * 25_000 + "fever" + "-b" * 25_000, Words.of("fever"), width)
    assert window.stop - window.start == width
    assert len(window.matches) == 1


def test_words_of_another_language_match_by_its_stems():
    words = Words.of("Krankenhäuser", ["Entzündung"], "de")
    assert marked("Im KRANKENHAUS: die Entzündungen.", words) == [
        ("KRANKENHAUS", "query"),
        ("Entzündungen", "generated"),
    ]
    assert marked("Im KRANKENHAUS", Words.of("Krankenhäuser")) == []


def test_words_that_overlap_are_marked_once():
    assert marked("당뇨병을", Words.of("당뇨병은", language="ko")) == [("당뇨", "query"), ("병", "query")]
