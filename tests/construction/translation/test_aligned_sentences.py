import pytest

from r2med.construction.translation.aligned_sentences import MAX_SENTENCE, aligned_spans, joined
from r2med.construction.translation.languages import language

CHINESE, ENGLISH = language("Chinese"), language("English")


def split(text, name="Chinese"):
    return [text[start:end] for start, end in aligned_spans(text, language(name))]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("发热3天。咳嗽！胸痛？", ["发热3天。", "咳嗽！", "胸痛？"]),
        ("主诉：发热\n  查体：体温38.5℃\n\n诊断", ["主诉：发热", "查体：体温38.5℃", "诊断"]),
        ("他说“疼。”然后走了。", ["他说“疼。”", "然后走了。"]),
        ("体温38.5℃，WBC 12.3。", ["体温38.5℃，WBC 12.3。"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_chinese_text_is_split_at_its_own_signs_and_at_lines(text, sentences):
    assert split(text) == sentences


def test_text_in_latin_letters_is_split_like_english():
    assert split("Er hat ca. 38 °C. Kein Husten.", "German") == ["Er hat ca. 38 °C.", "Kein Husten."]


@pytest.mark.parametrize("text", ["发热，" * 500, "发热；咳嗽，" * 300, "热" * 2000, "a " * 1000])
def test_a_very_long_sentence_is_cut_and_nothing_is_lost(text):
    parts = split(text)
    assert max(map(len, parts)) <= MAX_SENTENCE
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_translations_keep_the_lines_of_a_record():
    text = "发热。咳嗽。\n\n诊断"
    spans = aligned_spans(text, CHINESE)
    assert joined(text, spans, {"发热。": "Fever.", "咳嗽。": "Cough.", "诊断": "Diagnosis"}, ENGLISH) == (
        "Fever. Cough.\n\nDiagnosis"
    )
    assert joined("A. B.", [(0, 2), (3, 5)], {"A.": "甲。", "B.": "乙。"}, CHINESE) == "甲。乙。"
